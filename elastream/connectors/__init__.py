"""Where data enters and leaves by Spark: streaming sources, sinks, Kafka, DataFrame operators."""
