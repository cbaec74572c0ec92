"""A run as a notebook shows it: how it goes, and a row per operator."""

from collections.abc import Mapping
from html import escape

from elastream.control import Observation
from elastream.control.diagnosis import diagnose

COLUMNS = ("operator", "replicas", "queued", "in/s", "out/s", "busy", "dead letters")


KEPT = {"source": " unread", "output": " kept"}
"""Rows that wait for no operator, by the role of where they are."""


def run_html(name: str, policy: str, base: str, condition: str, seen: Observation, letters: Mapping[str, int]) -> str:
    """`condition` says how the run is; `letters` are the new dead letters of each operator."""
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    rows, diagnosis = [], diagnose(seen)
    for operator in seen.operators.values():
        source, plain = operator.role == "source", operator.role == "operator"
        cells = (
            escape(operator.operator),
            str(operator.replicas) if plain else "",
            f"{operator.queued:,}{KEPT.get(operator.role, '')}",
            _rate(operator.processed if source else operator.received, seen.seconds),
            _rate(operator.processed, seen.seconds),
            f"{diagnosis.operators[operator.operator].busy:.0%}" if plain else "",
            f"{letters.get(operator.operator, 0):,}",
        )
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    command = f"<p><code>elastream letters {escape(base)}</code> shows the dead letters</p>" if letters else ""
    return (
        f"<p><b>{escape(name)}</b>, {escape(condition)}; policy {escape(policy)}; entry {seen.tick:,}; "
        f"latency {seen.latency_mean_s * 1e3:.0f} ms, p95 {seen.latency_p95_s * 1e3:.0f} ms; base {escape(base)}<br/>{escape(diagnosis.verdict)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{command}"
    )


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}" if seconds else "0"
