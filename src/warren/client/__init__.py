"""Clients: programs that talk to a broker, ours or RabbitMQ."""
