"""What arrives and when. Rates, shapes, trace files and spikes enter; due times and keys leave."""

from elastream.workload.arrivals import Arrivals, in_bursts
from elastream.workload.data_spikes import DataSpike
from elastream.workload.keys import EQUAL, KeyChoice, Keys
from elastream.workload.random_spikes import random_spikes
from elastream.workload.shapes import constant, daily, formula, ramp, sine, steps
from elastream.workload.spec import parse_calm, parse_spikes, parse_workload
from elastream.workload.spikes import Spike, VolumeSpike, with_popularity, with_spikes
from elastream.workload.trace_file import from_csv, to_csv
from elastream.workload.traces import load_trace, provenance, trace_names

__all__ = [
    "EQUAL",
    "Arrivals",
    "DataSpike",
    "KeyChoice",
    "Keys",
    "Spike",
    "VolumeSpike",
    "constant",
    "daily",
    "formula",
    "from_csv",
    "in_bursts",
    "load_trace",
    "parse_calm",
    "parse_spikes",
    "parse_workload",
    "provenance",
    "ramp",
    "random_spikes",
    "sine",
    "steps",
    "to_csv",
    "trace_names",
    "with_popularity",
    "with_spikes",
]
