"""Queues: order, age, limits and who gets the next message."""
