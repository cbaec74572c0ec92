"""CPU seconds of this process and all that it started: Spark's JVM, its Python workers."""

from elastream.engine.measure.usage import tree_usage


def cpu_s() -> float:
    """Since each was started, those that have ended included once somebody has waited for them."""
    return tree_usage().cpu_s
