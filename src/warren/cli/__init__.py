"""The ``warren`` command: one file a command."""
