"""Which lane is served next, by which host, with how many tuples."""
