"""RabbitMQ queues as Spark tables, and tables as messages."""
