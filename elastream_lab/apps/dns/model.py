"""The classifier of domain names: nothing enters; what ordinary names look like, and a model trained on them, leave."""

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
import pyarrow as pa

from elastream_lab.apps.common.linear_model import LinearModel
from elastream_lab.apps.common.training import fit_linear
from elastream_lab.apps.dns.features import FEATURES, Floats, bigram_table, name_features
from elastream_lab.apps.dns.names import benign_names, generated_names
from elastream_lab.apps.dns.parsing import parse_queries

LEGIT, GENERATED = "legit", "generated"

EXAMPLES = 10_000
"""Of each class."""


@dataclass(frozen=True, eq=False)
class DnsModel:
    bigrams: Floats
    verdict: LinearModel


@lru_cache(maxsize=1)
def dns_model() -> DnsModel:
    """The letters' frequencies come from other ordinary names than the verdict, or these would all look too familiar."""
    bigrams = bigram_table(as_parsed(benign_names(2 * EXAMPLES, Random(1))).column("label"))
    names = benign_names(EXAMPLES, Random(2)) + generated_names(EXAMPLES, Random(3))
    examples = feature_rows(as_parsed(names), bigrams)
    return DnsModel(bigrams, fit_linear(examples, [LEGIT] * EXAMPLES + [GENERATED] * EXAMPLES))


def as_parsed(names: list[str]) -> pa.RecordBatch:
    """Bare names in the columns that the parser gives."""
    nobody = [""] * len(names)
    return parse_queries(
        pa.RecordBatch.from_pydict({"id": np.arange(len(names)), "client": nobody, "kind": nobody, "name": names})
    )


def feature_rows(parsed: pa.RecordBatch, bigrams: Floats) -> Floats:
    columns = name_features(parsed.column("label"), np.asarray(parsed.column("labels")), bigrams)
    return np.stack([columns[name] for name in FEATURES], axis=1)
