"""Handlers: functions that get the messages of queues.

``app`` takes them down, ``running`` puts them together with a group; ``lane`` and ``attempts`` are
what happens to a message; ``outcome`` says what follows a failure, ``letters`` and ``outbox`` carry
it out; ``standby`` is redundancy for one queue without a group.
"""
