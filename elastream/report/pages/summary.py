"""The top of a run's page, how it went at a glance, and the numbers at its end. A report enters, HTML leaves."""

from collections.abc import Mapping
from typing import Any

from elastream.report.pages.parts import text
from elastream.report.pages.words import NONE, count, figure, letters_command, plural, share, span, verdict
from elastream.report.scores.adaptability import ADAPTS_WELL, CEILING
from elastream.report.scores.containers import MANY_SEATS


def header(report: Mapping[str, Any], until_s: float, operators: int) -> str:
    ticks = (report.get("ticks") or {}).get("count", 0)
    facts = [span(until_s), plural(operators, "operator"), plural(ticks, "tick")]
    warnings = "".join(f'<p class="facts">Warning: {text(words)}.</p>' for words in report.get("warnings") or ())
    if diagnosis := report.get("verdict"):
        warnings = f'<p class="facts">Bottleneck: {text(diagnosis)}.</p>{warnings}'
    command = letters_command(report)
    letters = f'<p class="facts">Dead letters, with their errors: <code>{text(command)}</code></p>' if command else ""
    letters += "".join(f'<p class="facts">Failed: {text(words)}</p>' for words in report.get("failures") or ())
    return (
        f'<header><h1>{text(report.get("name", "run"))}</h1><p class="facts">policy <b>{text(report.get("policy", NONE))}</b> · '
        f'{" · ".join(facts)}</p><p class="verdict">{text(verdict(report))}</p>{letters}{warnings}</header>'
    )


def cards(report: Mapping[str, Any]) -> str:
    events, latency = report.get("events") or {}, report.get("latency_ms") or {}
    mean, p95, p99 = (span(latency[name] / 1e3) if name in latency else NONE for name in ("mean", "p95", "p99"))
    over, pause_ms = report.get("r_over"), (report.get("rescale_pause_ms") or {}).get("max")
    saved, lag, processed = (
        report.get(name) for name in ("saved_resources", "throughput_degradation", "processed_ratio")
    )
    of_all = f"{count(events.get('finished'))} of {count(events.get('entered'))}"
    made = [
        _card(
            "Saved resources", share(saved), f"of {over:,} sized for the peak" if over else "of the peak's size", saved
        ),
        _card("Degradation", share(lag), "mean gap of output to input", lag),
        _card("Latency, mean", mean, f"p95 {p95} · p99 {p99}"),
        _card("Processed", share(processed), of_all, processed),
        _card(
            "Rescales",
            count(report.get("rescales")),
            f"longest tick with one {span(pause_ms / 1e3)}" if pause_ms else "",
        ),
        _index_card(report.get("ai_sps") or {}, (report.get("ai_sps_busy") or {}).get("index")),
    ]
    return f'<section class="cards" aria-label="Score">{"".join(made)}</section>'


def more_numbers(report: Mapping[str, Any]) -> str:
    """Those that have no card."""
    ticks, load = report.get("ticks") or {}, report.get("load")
    facts: dict[str, str] = {}
    if ticks:
        p50, p95, longest = (span(ticks.get(name, 0.0) / 1e3) for name in ("p50_ms", "p95_ms", "max_ms"))
        facts["Ticks"] = f"{p50} median · {p95} p95 · {longest} longest"
    if "replica_seconds" in report:
        facts["Replica seconds"] = count(report["replica_seconds"])
    if usage := report.get("usage"):
        facts["CPU and memory"] = (
            f"{count(usage['cpu_s'])} s, {figure(usage['cores'])} cores in the mean · {count(usage['memory_mb'])} MB at most"
        )
    for name, level in ((report.get("fleet") or {}).get("levels") or {}).items():
        if name == "seat" and level["fewest"] >= MANY_SEATS:
            continue
        came = f" · one comes in {span(level['start_s'])}" if level["came"] else ""
        few, most = level["fewest"], level["most"]
        facts[f"{name.capitalize()}s"] = (
            f"{count(few)}{'' if few == most else f' to {count(most)}'} · {count(level['seconds'])} seconds in all{came}"
        )
    if load:
        facts["Load ratio"] = f"{figure(load.get('ratio_mean'))} mean · {figure(load.get('ratio_max'))} most"
        facts["Load balance"] = f"{figure(load.get('lb_mean'))} mean · {figure(load.get('lb_max'))} most"
        for level in ("hosts", "machines"):
            if found := load.get(level):
                facts[f"Load of {level}"] = (
                    f"ratio {figure(found.get('ratio_mean'))} mean · balance {figure(found.get('lb_mean'))} mean"
                )
    names = {"queue_latency": "Queue and latency, correlation", "throughput_queue": "Throughput and queue, correlation"}
    for key, found in (report.get("correlations") or {}).items():
        both = f"{figure(found.get('pearson'))} Pearson · {figure(found.get('spearman'))} Spearman" if found else NONE
        facts[names.get(key, key)] = both
    rows = "".join(f"<div><dt>{text(name)}</dt><dd>{text(words)}</dd></div>" for name, words in facts.items())
    return f'<section><h2>More numbers</h2><dl class="more">{rows}</dl></section>' if rows else ""


def _index_card(ai_sps: Mapping[str, Any], busy: float | None) -> str:
    index = ai_sps.get("index")
    if index is None:
        return _card("AI-SPS", NONE, str(ai_sps.get("reason") or "not measured"))
    good = index >= ADAPTS_WELL
    highest = ai_sps.get("ceiling", CEILING)
    words = "adapts well" if good else f"adapts poorly: {ADAPTS_WELL:.0f} would be well"
    words += f" · at most {figure(highest)}" + (f" · of busy replicas {figure(busy)}" if busy is not None else "")
    return _card("AI-SPS", figure(index), words, index / highest, "index good" if good else "index poor")


def _card(name: str, value: str, hint: str, part: float | None = None, kind: str = "") -> str:
    """`part` of a bar at its foot is filled."""
    meter = "" if part is None else f'<i class="meter" style="--part:{max(0.0, min(1.0, part)):.4f}"></i>'
    return (
        f'<div class="card {kind}"><span class="name">{text(name)}</span><b>{text(value)}</b>'
        f'<span class="hint">{text(hint)}</span>{meter}</div>'
    )
