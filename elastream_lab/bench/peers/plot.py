"""The picture of the comparison: latency, time without output and replicas over the run, one colour per row."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from elastream_lab.bench.peers.compare import PeersBench
from elastream_lab.bench.suites.outcomes_plot import COLOURS


def draw_peers(bench: PeersBench, path: Path) -> None:
    """The first run of each row as a line, the others thin beside it."""
    figure, (latency, silence, replicas) = plt.subplots(3, 1, figsize=(12, 10), sharex=True, constrained_layout=True)
    for row, colour in zip(bench.rows, COLOURS, strict=True):
        for run in bench.runs_of(row):
            first = run.number == 1
            how = {"color": colour, "lw": 1.4 if first else 0.6, "alpha": 1.0 if first else 0.6}
            name = row.name if first else None
            latency.plot(*_columns(run.counted.latency_line_ms), label=name, **how)
            silence.plot(*_columns([(at, s * 1e3) for at, s in run.counted.silences_s]), **how)
            sizes = [(at, float(sum(sizes.values()))) for at, sizes in run.changes]
            # The last size holds until the end.
            sizes = [(0.0, sizes[0][1]), *sizes[1:], (bench.seconds, sizes[-1][1])] if sizes else []
            replicas.step(*_columns(sizes), where="post", **how)
    latency.set(ylabel="latency, ms (log)", title="Mean latency of the tuples that were due in a second", yscale="log")
    silence.set(ylabel="ms (log)", title="Longest time without output in a second", yscale="log")
    replicas.set(ylabel="replicas", xlabel="seconds", title="Replicas of the four operators together", ylim=(0, None))
    for panel in (latency, silence):
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for panel in (latency, silence, replicas):
        panel.grid(alpha=0.25)
    if bench.runs:
        # Room for the legend above the lines.
        latency.set_ylim(top=latency.get_ylim()[1] * 5)
        latency.legend(fontsize=8, loc="upper left", ncols=3)
    named = ", ".join(f"{name} {version}" for name, version in bench.versions.items())
    figure.suptitle(f"The same tuples on Elastream and others, {bench.cores} cores ({named or 'none fetched'})")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _columns(points: "list[tuple[float, float]] | tuple[tuple[float, float], ...]") -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
