"""AMQP 0-9-1 on the wire, for both sides of a connection. Bytes in, values out; no sockets."""
