"""What arrives and when. Rates, formulas and trace files enter; due times leave."""

from elastream.workload.arrivals import Arrivals, constant, formula, from_csv
from elastream.workload.traces import load_trace, trace_names

__all__ = ["Arrivals", "constant", "formula", "from_csv", "load_trace", "trace_names"]
