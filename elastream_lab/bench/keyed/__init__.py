"""Keyed state and skewed keys measured."""
