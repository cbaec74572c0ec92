"""YAML that cannot be read, wherever a user may give some: one line that names the file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from elastream.cli.guard_options import load_guards
from elastream.errors import Damaged, ElastreamError, SettingError
from elastream.lanes.sealed import unseal
from elastream.policies.multi_level.table import load_table
from elastream.policies.multi_level.usual import load_usual
from elastream.simulator.cluster import load_cluster
from elastream.simulator.profile import load_profile
from elastream_lab.apps.ddos.subspace_model import read_model
from elastream_lab.bench.suites.suite import parse_suite

DEEP = 100_000


def suite(path: str) -> object:
    return parse_suite("deep", Path(path).read_text(encoding="utf-8"), path)


READERS: list[Callable[[str], object]] = [load_guards, suite, load_cluster, load_table, load_usual]


def said_of(read: Callable[[str], object], path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingError) as caught:
        read(str(path))
    said = str(caught.value)
    assert "\n" not in said and str(path) in said
    return said


@pytest.mark.parametrize("read", READERS)
def test_yaml_that_is_nested_too_deeply_is_refused_with_one_line(read: Callable[[str], object], tmp_path: Path) -> None:
    for text in ("[" * 1200 + "]" * 1200, "{a: " * 1200 + "1" + "}" * 1200):
        assert "nested too deeply" in said_of(read, tmp_path / "deep.yaml", text)
    # Somewhere between them is the depth that Python just reads.
    for depth in range(300, 600, 60):
        said_of(read, tmp_path / "deep.yaml", "[" * depth + "]" * depth)


def test_an_option_of_a_scenario_that_is_nested_too_deeply_is_refused_with_one_line(tmp_path: Path) -> None:
    text = f"scenarios:\n  - name: a\n    options: {'[' * 1200}{']' * 1200}\n"
    assert "nested too deeply" in said_of(suite, tmp_path / "deep.yaml", text)


@pytest.mark.parametrize("read", READERS)
def test_a_date_that_is_none_is_refused_with_one_line(read: Callable[[str], object], tmp_path: Path) -> None:
    text = "title: 2026-13-01\nscenarios:\n  - {name: a}\n"
    assert "month must be in 1..12" in said_of(read, tmp_path / "date.yaml", text) or read is suite


@pytest.mark.parametrize("read", [load_profile, read_model])
def test_json_that_is_nested_too_deeply_is_refused_with_one_line(read: Callable[[str], object], tmp_path: Path) -> None:
    said_of(read, tmp_path / "deep.json", "[" * DEEP + "]" * DEEP)


def test_a_header_that_is_nested_too_deeply_is_damage() -> None:
    with pytest.raises(Damaged, match="no header"):
        unseal("reader", b"[" * DEEP + b"]" * DEEP + b"\n{}\n", "here")
    assert issubclass(Damaged, ElastreamError)
