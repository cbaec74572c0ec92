"""The Structured Streaming query between Spark's connectors and the lanes."""
