"""The engine measured against Spark itself."""
