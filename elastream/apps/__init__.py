"""Applications that ship with the package. Arrivals enter; a topology leaves."""

BUILT_IN = {
    "tweets": "elastream.apps.tweets:topology",
    "tweets-complex": "elastream.apps.tweets_complex:topology",
    "dns": "elastream.apps.dns:topology",
    "wordcount": "elastream.apps.wordcount:topology",
    "top-n": "elastream.apps.top_n:topology",
    "yahoo": "elastream.apps.yahoo:topology",
    "nexmark-q5": "elastream.apps.nexmark_q5:topology",
    "nexmark-q11": "elastream.apps.nexmark_q11:topology",
    "ddos": "elastream.apps.ddos:topology",
    "comd": "elastream.apps.comd:topology",
}
"""Name -> where its topology is."""

COUNTING = ("wordcount", "top-n")
"""Those that have an operator more where the grouping does not keep a key in one replica."""

WINDOWED = ("nexmark-q5", "nexmark-q11")
"""Those whose results come only when windows of ten seconds have ended."""
