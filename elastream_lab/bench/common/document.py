"""Results of benchmarks as JSON documents: their fields, and their verdicts."""

from typing import Any

from elastream.codec import to_plain


def document_of(result: object) -> dict[str, Any]:
    """The fields of a result and, where it has a property `verdicts`, the figures that are computed from them."""
    return {**to_plain(result), **to_plain(getattr(result, "verdicts", {}))}
