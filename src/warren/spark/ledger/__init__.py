"""The ledger: what was drained from queues, and how its files are written and read."""
