"""What a broker decides: exchanges, queues, consumers, channels. No sockets, no clock."""
