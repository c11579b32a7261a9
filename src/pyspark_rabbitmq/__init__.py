"""Spark finds ``format("rabbitmq")`` here by itself: it looks into every module ``pyspark_*``."""

from warren.spark.datasource import RabbitDataSource as DefaultSource

__all__ = ["DefaultSource"]
