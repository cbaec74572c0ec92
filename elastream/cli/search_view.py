"""The search of a policy in the live view: what was tried, what was expected, the best so far, and what comes next."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from elastream.report.pages.search import latency_words, sizes_words


def search_lines(step: Mapping[str, Any] | None) -> list[Text]:
    """Four lines; none for a run whose policy does not search."""
    if step is None:
        return []
    expected = "not predicted"
    if step["expected"] is not None:
        expected = f"expected {step['expected']:.3f} ± {step['deviation'] or 0.0:.3f}"
    state = "over" if step["over"] else f"{step['number']} tried"
    lines = [
        (
            "search",
            f"{state}; sizes of {', '.join(step['operators'])} for {step['latency_ms']:.0f} ms at "
            f"{step['per_second']:.4g}/s; a score of {step['enough']:.3f} is enough",
        ),
        ("  tried", f"{_sizes(step, 'sizes')}  {expected}, measured {step['score']:.3f}, {_ms(step, 'measured_ms')}"),
        ("  best", f"{_sizes(step, 'best')}  {step['best_score']:.3f}, {_ms(step, 'best_ms')}"),
        ("  next" if not step["over"] else "  stays", f"{_sizes(step, 'next')}  {step['why']}"),
    ]
    return [
        Text.assemble((f"{name:<9}", "green"), said, overflow="ellipsis", no_wrap=True, style="")
        for name, said in lines
    ]


def _sizes(step: Mapping[str, Any], key: str) -> str:
    return sizes_words(step[key])


def _ms(step: Mapping[str, Any], key: str) -> str:
    return f"latency {latency_words(step[key])}"
