"""Consumer groups: balanced, ordered, redundant workers for RabbitMQ queues.

Safety comes from the broker (an exclusive consumer, or a single active one); balance comes from
the group. ``assign`` is pure, ``member`` and ``dispatcher`` decide and never wait, ``group`` is
the asyncio shell round them, ``coordination`` is how members hear of each other.
"""
