"""What arrives and when. Rates, formulas and trace files enter; due times leave."""

from elastream.workload.arrivals import Arrivals, constant, formula, from_csv

__all__ = ["Arrivals", "constant", "formula", "from_csv"]
