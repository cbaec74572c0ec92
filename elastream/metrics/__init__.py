"""Metrics: one catalogue (name, kind, unit, meaning, labels), and the samples that a run gives for it.

`catalogue` has the entries and imports nothing of the package. `from_status`, `from_observation` and `from_record` yield samples;
an exporter serves them, and `reference` writes the page of the documentation.
"""
