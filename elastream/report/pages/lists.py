"""The tables of a run's page: operators, decisions, and what was not done. A report enters, HTML leaves."""

from collections.abc import Mapping, Sequence
from typing import Any

from elastream.metrics import catalogue
from elastream.report.pages.parts import html_table, text
from elastream.report.pages.words import clock, count, figure, plural

MOST_ROWS = 2000
"""So many decisions are listed and marked; report.json has all of them."""

_MOST_LETTERS = 600
_MANY = 10
"""A longer list can be searched."""

_COLUMNS = {
    "received": ("received", count),
    "processed": ("processed", count),
    "dropped": ("dropped", count),
    "dead_letters": ("dead letters", count),
    "late": ("late", count),
    "queued_max": ("most queued", count),
    "queued_end": ("queued at the end", count),
    "replicas_mean": ("replicas, mean", figure),
    "replicas_max": ("most", count),
    "service_ms": ("service ms", figure),
    "busy_seconds": ("busy s", count),
}


_MEANINGS = {
    _COLUMNS[column][0]: metric.meaning
    for column, metric in {
        "received": catalogue.OPERATOR_INPUT,
        "processed": catalogue.OPERATOR_PROCESSED,
        "dead_letters": catalogue.OPERATOR_DEAD_LETTERS,
        "late": catalogue.OPERATOR_LATE,
        "queued_end": catalogue.OPERATOR_QUEUED,
        "busy_seconds": catalogue.OPERATOR_BUSY,
    }.items()
}
"""By the title of the column."""


def operator_table(report: Mapping[str, Any], sources: Sequence[str], inks: Mapping[str, str]) -> str:
    operators, health, pools = (report.get(name) or {} for name in ("operators", "health", "pools"))
    if not operators:
        return ""
    head = ["operator", *(title for title, _ in _COLUMNS.values())]
    head += ["may have"] * bool(pools) + ["lowest health"] * bool(health)
    rows = []
    for name, numbers in operators.items():
        swatch = f'<i class="swatch ink-{inks[name]}"></i>' if name in inks else '<i class="swatch"></i>'
        kind = ' <span class="hint">source</span>' if name in sources else ""
        row = [f"{swatch}{text(name)}{kind}", *(show(numbers.get(key)) for key, (_, show) in _COLUMNS.items())]
        row += [count(pools.get(name))] * bool(pools) + [figure(health.get(name))] * bool(health)
        rows.append(row)
    return f"<section><h2>Operators</h2>{html_table(head, rows, 'operators', meanings=_MEANINGS)}</section>"


def decision_list(decisions: Sequence[Mapping[str, Any]], inks: Mapping[str, str]) -> str:
    """The script reads the marks of the chart from these rows."""
    if not decisions:
        return ""
    rows = [
        f'<tr data-t="{d["t_s"]:.3f}" data-ink="{inks.get(d["operator"], "other")}" data-before="{int(d["before"])}" '
        f'data-after="{int(d["after"])}"><td>{clock(d["t_s"])}</td><th scope="row">{text(d["operator"])}</th>'
        f"<td>{int(d['before'])} → {int(d['after'])}</td><td>{_short(d['reason'])}</td></tr>"
        for d in decisions[:MOST_ROWS]
    ]
    said = plural(len(decisions), "decision")
    if len(decisions) > MOST_ROWS:
        said += f", the first {MOST_ROWS:,} of them here"
    return _folded("decisions", "Decisions", said, ("when", "operator", "replicas", "reason"), rows)


def remark_list(report: Mapping[str, Any]) -> str:
    """Redirections, moves, and what was asked for and not done; a change of replicas is a decision and stands there."""
    if "remarks" not in report:
        return ""
    remarks = [remark for remark in report["remarks"] if remark["kind"] != "rescale"]
    if not remarks:
        return '<section><h2>Remarks</h2><p class="lead">Nothing was held back, and no policy failed.</p></section>'
    rows = [
        f'<tr><td>{clock(r["t_s"])}</td><td><span class="tag {text(r["kind"])}">{text(r["kind"])}</span></td>'
        f"<td>{_short(r['words'])}</td></tr>"
        for r in remarks[-MOST_ROWS:]
    ]
    return _folded(
        "remarks",
        "Redirected, moved, or not done, and why",
        plural(len(remarks), "remark"),
        ("when", "kind", "in words"),
        rows,
    )


def state_list(report: Mapping[str, Any]) -> str:
    """What became of the states of keyed operators when their replicas changed."""
    moves = report.get("state_moves") or []
    if not moves:
        return ""
    rows = [
        f'<tr><td>{clock(m["t_s"])}</td><th scope="row">{text(m["operator"])}</th><td>{count(m["replicas"])}</td>'
        f"<td>{count(m['groups'])}</td><td>{count(m['between_hosts'])}</td><td>{count(m['keys'])}</td><td>{count(m['bytes'])}</td>"
        f"<td>{figure(m['waited_ms'])}</td><td>{_same(m)}</td></tr>"
        for m in moves[-MOST_ROWS:]
    ]
    head = (
        "when",
        "operator",
        "replicas",
        "key groups",
        "to another host",
        "keys",
        "bytes",
        "a key waited at most, ms",
        "checksum",
    )
    return _folded("states", "State that moved", plural(len(moves), "change"), head, rows)


def _same(moved: Mapping[str, Any]) -> str:
    if moved["problem"]:
        return _short(moved["problem"])
    if not moved["between_hosts"]:
        return "stayed in its host"
    return "the same" if moved["checksum_before"] == moved["checksum_after"] else "not the same"


def _folded(key: str, title: str, said: str, head: Sequence[str], rows: Sequence[str]) -> str:
    search = f'<input type="search" placeholder="Search the {key}" aria-label="search the {key}"><output></output>'
    heads = "".join(f'<th scope="col">{name}</th>' for name in head)
    lines = "\n".join(rows)
    return (
        f'<details class="list" id="{key}"><summary><h2>{title}</h2><span class="hint">{said}</span></summary>'
        f'{search if len(rows) > _MANY else ""}<div class="scroll" tabindex="0" role="region" aria-label="{key}">'
        f'<table class="words"><thead><tr>{heads}</tr></thead><tbody>\n{lines}\n</tbody></table></div></details>'
    )


def _short(words: object) -> str:
    said = str(words)
    return text(said if len(said) <= _MOST_LETTERS else said[: _MOST_LETTERS - 1] + "…")
