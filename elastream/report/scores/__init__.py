"""Scores of a run: samples enter; metrics, the adaptability index and correlations leave."""
