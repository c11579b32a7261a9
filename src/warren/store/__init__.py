"""Where a broker keeps what must survive: bytes and positions, nothing of the broker's own."""
