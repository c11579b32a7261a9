"""RabbitMQ queues as Spark tables, and tables as messages.

``format("rabbitmq")`` needs no import; what is here makes a session and reads queues in one call
each.
"""

from warren.spark.read import read_queues
from warren.spark.session import session

__all__ = ["read_queues", "session"]
