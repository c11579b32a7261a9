"""How fast: warren and RabbitMQ side by side, under the same raw-socket load."""
