"""Pictures of a graph: lines of text for a terminal, a small SVG for Jupyter."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elastream.topology.graph import Graph

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 150, 46, 90, 22


def draw_text(graph: Graph) -> str:
    """One line an operator, under its predecessors, with what leads there."""
    depth = _depths(graph)
    rows: list[tuple[str, str]] = []
    for operator in graph.operators:
        into = graph.edges_into(operator.name)
        arrow = f"{'   ' * (depth[operator.name] - 1)}└─ " if into else ""
        size = "" if operator.chained else f" x {operator.replicas}"
        details = [str(operator.kind) + (", chained" if operator.chained else "")]
        details += [f"{edge.grouping} of {edge.source}" for edge in into if not operator.chained]
        rows.append((f"{arrow}{operator.name}{size}", "; ".join(details)))
    width = max(len(left) for left, _ in rows)
    return "\n".join([graph.name, *(f"  {left.ljust(width)}  {right}" for left, right in rows)])


def draw_html(graph: Graph) -> str:
    """Boxes in columns by depth, arrows labelled with their grouping."""
    depth = _depths(graph)
    columns: dict[int, list[str]] = {}
    for operator in graph.operators:
        columns.setdefault(depth[operator.name], []).append(operator.name)
    at = {
        name: (10 + x * (_WIDTH + _GAP_X), 10 + y * (_HEIGHT + _GAP_Y))
        for x, names in columns.items()
        for y, name in enumerate(names)
    }
    width = max(x for x, _ in at.values()) + _WIDTH + 10
    height = max(y for _, y in at.values()) + _HEIGHT + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12"><defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>'
        + "".join(_svg_edge(at[e.source], at[e.target], str(e.grouping)) for e in graph.edges)
        + "".join(_svg_box(at[o.name], o.name, f"{o.kind} x {o.replicas}") for o in graph.operators)
        + "</svg>"
    )


def _depths(graph: Graph) -> dict[str, int]:
    depth: dict[str, int] = {}
    for operator in graph.operators:
        depth[operator.name] = max((depth[e.source] + 1 for e in graph.edges_into(operator.name)), default=0)
    return depth


def _svg_box(at: tuple[int, int], name: str, details: str) -> str:
    x, y = at
    middle = x + _WIDTH // 2
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#eef4fb" stroke="#3b6ea5"/>'
        f'<text x="{middle}" y="{y + 19}" text-anchor="middle" font-weight="bold" fill="#123">{escape(name)}</text>'
        f'<text x="{middle}" y="{y + 36}" text-anchor="middle" fill="#456">{escape(details)}</text>'
    )


def _svg_edge(start: tuple[int, int], end: tuple[int, int], label: str) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH, start[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#555" marker-end="url(#tip)"/>'
        f'<text x="{(x1 + x2) // 2}" y="{(y1 + y2) // 2 - 5}" text-anchor="middle" fill="#555" font-size="10">{escape(label)}</text>'
    )
