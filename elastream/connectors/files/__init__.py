"""Read and write files through Spark."""
