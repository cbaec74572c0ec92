"""Hosts: long Spark tasks in which replicas live. How they start, who is alive, what is said over their sockets."""
