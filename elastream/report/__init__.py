"""How a run went, in numbers and pictures. Samples and counts enter; the score, the report and its page leave."""

from elastream.report.record import Events, Record, Rescale
from elastream.report.series import Sample, Series
from elastream.report.write import make_report, write_report

__all__ = ["Events", "Record", "Rescale", "Sample", "Series", "make_report", "write_report"]
