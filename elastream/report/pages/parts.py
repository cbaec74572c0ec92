"""What all pages are made of: the shell with its style and script inside, figures, tables. Text enters, safe HTML leaves."""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from elastream.report.pages.charts import Chart, as_json

SCRIPTS = ("format.js", "scales.js", "chart.js", "marks.js", "crosshair.js", "tables.js", "page.js")
"""In this order: each uses what the ones before it define."""

FOOTER = "<footer>Made by Elastream. This file holds all that it shows and asks nobody for more.</footer>"


def document(title: str, body: str, charts: Iterable[Chart]) -> str:
    """One file that needs nothing else. A browser that obeys its policy runs no script but ours and asks nobody for anything."""
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; base-uri 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_read('page.css')}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="application/json" id="charts">{embedded([as_json(chart) for chart in charts])}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def embedded(value: Any) -> str:
    """JSON that cannot end the element it stands in, whatever the names in it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # A half of a pair of surrogates is legal in a name, and in no file.
    return text.encode("utf-8", "replace").decode()


def text(value: object) -> str:
    """Escaped, and without what cannot be written to a file."""
    return escape(str(value).encode("utf-8", "replace").decode())


def chart_figure(chart: Chart, level: int = 2, controls: bool = True) -> str:
    """Where the script draws; title and caption stand there without it."""
    switch = log_switch(chart.title.lower()) if chart.log and controls else ""
    legend = '<div class="legend"></div>' if controls else ""
    kind = "chart small" if chart.small else "chart"
    caption = f"<p>{text(chart.caption)}</p>" if chart.caption else ""
    return (
        f'<figure class="{kind}" data-chart="{text(chart.key)}"><figcaption><h{level}>{text(chart.title)}</h{level}>'
        f'{switch}{caption}</figcaption>{legend}<div class="plot"></div></figure>'
    )


def log_switch(of_what: str, charts: str = "") -> str:
    """Linear or logarithmic: one chart, or all those whose keys begin with `charts`."""
    kind = f' data-charts="{text(charts)}"' if charts else ""
    return (
        f'<div class="switch" role="group" aria-label="axis of {text(of_what)}"{kind}>'
        '<button type="button" data-scale="linear" aria-pressed="true">linear</button>'
        '<button type="button" data-scale="log" aria-pressed="false">log</button></div>'
    )


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    label: str,
    kind: str = "",
    meanings: Mapping[str, str] | None = None,
) -> str:
    """The first column to the left, figures to the right. Cells are HTML already, the head and its meanings are text."""
    heads = "".join(
        f'<th scope="col"{_title((meanings or {}).get(name))}><button type="button">{text(name) or "<span class=unseen>name</span>"}</button></th>'
        for name in head
    )
    body = "\n".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(label)}"><table class="sortable {kind}">'
        f"<thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def _title(meaning: str | None) -> str:
    return f' title="{text(meaning)}"' if meaning else ""


@cache
def _script() -> str:
    return '\n"use strict";\n(() => {\n' + "\n".join(_read(name) for name in SCRIPTS) + "})();\n"


@cache
def _read(name: str) -> str:
    return files("elastream.report.pages").joinpath("web", name).read_text(encoding="utf-8")
