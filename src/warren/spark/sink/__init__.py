"""Rows as messages: what a task does with a table."""
