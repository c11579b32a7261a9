"""What ``warren demo`` shows: one file a scene, and what the scenes share.

``stage`` is the terminal, ``ledger`` the accounts, ``link`` a small AMQP client, ``crew`` the
worker processes and ``worker`` what runs in them. A worker has to start fast, and it starts with
this file: nothing is imported here.
"""
