"""Chaos: a run whose processes are killed, whose disk is full and whose clock jumps, and what became of its tuples."""
