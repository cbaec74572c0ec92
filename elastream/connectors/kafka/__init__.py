"""Read and write Kafka topics through Spark."""
