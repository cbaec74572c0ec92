"""Applications that ship with the package. Arrivals enter; a topology leaves."""

BUILT_IN = {"demo": "elastream.apps.demo:topology"}
"""Name -> where its topology is."""
