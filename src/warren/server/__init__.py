"""The asyncio shell round the broker: sockets, timers, flow control."""
