"""Applications that ship with the package. Arrivals enter; a topology leaves."""

BUILT_IN = {
    "tweets": "elastream.apps.tweets:topology",
    "tweets-complex": "elastream.apps.tweets_complex:topology",
    "dns": "elastream.apps.dns:topology",
}
"""Name -> where its topology is."""
