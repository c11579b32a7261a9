"""Draining queues into the ledger: what a task does with its ranges of offsets."""
