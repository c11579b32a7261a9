"""What ``warren demo`` shows: one file a scene, and what the scenes share.

``stage`` is the terminal, ``ledger`` the accounts, ``link`` a small AMQP client, ``crew`` the worker
processes and ``worker`` what runs in them. ``python -m warren.cli.scenes.worker`` starts often and has
to start fast: nothing is imported here.
"""
