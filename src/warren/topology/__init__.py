"""Exchanges, queues, bindings and policies of a vhost from one file: apply, diff, export."""
