"""How a run went, in numbers and pictures. Samples and counts enter; the score, the report and its page leave."""

from elastream.scoring.record import Events, Record, Rescale
from elastream.scoring.report import make_report, write_report
from elastream.scoring.series import Sample, Series

__all__ = ["Events", "Record", "Rescale", "Sample", "Series", "make_report", "write_report"]
