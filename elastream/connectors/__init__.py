"""Connections to the outside through Spark: sources, sinks, Kafka, files, tables, DataFrame operators.

`SparkSource` and `SparkSink` are the bases for connectors of your own.
"""

from elastream.connectors.spark_sink import SinkBatch, SparkSink
from elastream.connectors.spark_source import SparkSource

__all__ = ["SinkBatch", "SparkSink", "SparkSource"]
