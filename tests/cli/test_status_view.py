"""The view of a run on a terminal, from a status document."""

from typing import Any

from rich.console import Console

from elastream.cli.status_view import status_line, view
from elastream.engine.operations.status_document import LevelRow, Line, OperatorRow, StatusDocument


def row(name: str, **more: Any) -> OperatorRow:
    plain: dict[str, Any] = {
        "role": "operator",
        "replicas": 1,
        "min": 1,
        "max": 1,
        "queued": 0,
        "in_per_s": 0.0,
        "out_per_s": 0.0,
        "wait_s": 0.0,
        "service_s": 0.0,
        "busy": 0.0,
    }
    return OperatorRow(name=name, **plain | more)


def document(*operators: OperatorRow, **more: Any) -> StatusDocument:
    plain: dict[str, Any] = {
        "run": "r", "name": "shown", "policy": "elastic", "base": "/base", "host": "vm", "pid": 1, "process": [], "every_s": 1.0, "written_s": 200.0,
        "started_s": 100.0, "phase": "running",
    }  # fmt: skip
    return StatusDocument(operators=operators, **plain | more)


def shown(seen: StatusDocument, width: int = 100) -> str:
    console = Console(width=width, record=True, force_terminal=True)
    console.print(view(seen))
    return console.export_text()


def line_of(text: str, operator: str) -> str:
    return next(line for line in text.splitlines() if line.strip().startswith(operator))


def test_the_view_shows_operators_replicas_queues_rates_and_changes() -> None:
    text = shown(
        document(
            row("in", role="source", queued=7, in_per_s=250.0, out_per_s=250.0, service_s=2e-5),
            row("work", replicas=3, max=8, queued=123, in_per_s=250.0, out_per_s=200.0, wait_s=0.615, service_s=0.003,
                busy=0.2, load=0.37, late=5),
            row("out", role="output", queued=9000, in_per_s=200.0),
            entry=42, tick_ms=100.0, in_per_s=250.0, out_per_s=200.0, queued=123, latency_mean_s=0.25, latency_p95_s=0.5,
            verdict="keeps up: latency 250 ms",
            levels=(LevelRow(level="host", there=1, planned=2, max=2),),
            lines=(Line(107.5, "rescale", "work: 2 -> 3  by hand, at 7 s"),),
        ),
        160,
    )  # fmt: skip
    assert "tick 42 (100 ms)   in 250/s   out 200/s   queued 123   dropped 0   latency 250 ms, p95 500 ms" in text
    assert "hosts 1 of 2" in text and "keeps up: latency 250 ms" in text
    assert line_of(text, "work").split() == [
        "work",
        "3",
        "of",
        "8",
        "██",
        "123",
        "250",
        "200",
        "615",
        "ms",
        "3.00",
        "ms",
        "20%",
        "0.37",
        "5",
    ]
    assert "7.5\u00a0s  work: 2 -> 3  by hand, at 7 s" in text


def test_rows_kept_for_readers_are_no_queue_and_what_a_source_has_not_read_is_lag() -> None:
    text = shown(
        document(
            row("clicks", role="source", queued=1200, lag={"clicks-1": 1190, "clicks-0": 10, "clicks-2": 0}),
            row("out", role="output", queued=9000),
        )
    )
    assert "9,000 kept" in text and "1,200 unread" in text and "queued 0   " in text
    assert "lag of clicks by partition  clicks-1: 1,190, clicks-0: 10" in text and "clicks-2" not in text


def test_what_guards_refused_and_dead_letters_are_named_with_the_command_that_shows_them() -> None:
    text = shown(
        document(
            row("enrich", replicas=4, max=4, wanted=9, busy=1.0, dead_letters=3),
            verdict="enrich is the bottleneck: 4 of 4 replicas, wants 9 (limit), tuples wait 2.3 s",
            vetoes=("enrich: wants 9, gets 4 (limits: 1..4 replicas)  900 will arrive",),
            lines=(Line(108.0, "error", "policy 'psps' raised ZeroDivisionError: no idea"),),
            dead_letters=3,
            failures=("enrich: ValueError: no 3",),
        )
    )
    assert "enrich is the bottleneck: 4 of 4 replicas, wants 9 (limit)" in text
    assert "held back  enrich: wants 9, gets 4 (limits: 1..4 replicas)  900 will arrive" in text
    assert "8.0\u00a0s  policy 'psps' raised ZeroDivisionError: no idea" in text
    assert "enrich: ValueError: no 3" in text and "elastream letters /base shows the dead letters" in text


def test_the_table_fits_a_terminal_of_80_columns() -> None:
    wide = row("enrich", replicas=12, max=64, queued=1_234_567, in_per_s=12345.0, out_per_s=12345.0, wait_s=123.0,
               service_s=0.0123, busy=1.0, load=123.45, late=12345)  # fmt: skip
    text = shown(document(wide), 80)
    line = line_of(text, "enrich")
    assert "12 of 64" in line and "1,234,567" in line and "100%" in line and len(line.rstrip()) <= 80


def test_without_a_terminal_the_run_is_one_line() -> None:
    seen = document(
        row("in", role="source"), row("work", replicas=2), entry=7, queued=3, verdict="keeps up: latency 9 ms"
    )
    assert status_line(seen) == (
        "tick 7  in 0/s  out 0/s  queued 3  dropped 0  late 0  dead letters 0  latency 0.000 s  replicas work:2  "
        "keeps up: latency 9 ms"
    )


def test_the_watermark_of_a_window_is_shown_with_the_rows_that_were_late() -> None:
    text = shown(document(row("count", watermark_s=1_700_000_000.0, late=12), row("plain")))
    assert "watermark of count  2023-11-14 22:13:20 UTC, 12 rows were late" in text and "watermark of plain" not in text
