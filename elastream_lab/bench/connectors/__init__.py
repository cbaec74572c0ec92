"""Connectors and DataFrame operators measured."""
