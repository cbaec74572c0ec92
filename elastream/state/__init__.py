"""Keyed state: what operators remember of every key, by key group. Knows no Spark, no driver and no host."""
