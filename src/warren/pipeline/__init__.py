"""A pipeline in one file: queues to tables, bad messages to quarantine, results back."""
