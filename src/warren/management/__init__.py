"""RabbitMQ's HTTP API: what is asked and what is answered, without sockets."""
