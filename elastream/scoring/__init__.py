"""How a run went, in numbers and pictures. Samples and counts enter; the report leaves."""

from elastream.scoring.report import Events, Record, Rescale, make_report, write_report
from elastream.scoring.series import Sample, Series

__all__ = ["Events", "Record", "Rescale", "Sample", "Series", "make_report", "write_report"]
