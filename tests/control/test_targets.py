"""Targets of users: a latency, or a rate to be ready for, for every policy that has one."""

import argparse
import inspect
from pathlib import Path

import pytest

from elastream import Topology, sources, start
from elastream.cli.main import main
from elastream.cli.policy_options import chosen_policy
from elastream.cli.run import add_arguments
from elastream.errors import SettingError
from elastream.policies import make_policy, with_targets
from elastream.policies.psps import Psps
from elastream.testing import LocalEngine
from elastream.workload import constant


@pytest.mark.parametrize(
    ("word", "becomes"),
    [
        ("autrascale", "autrascale:latency_ms=300"),
        ("autrascale:w=2", "autrascale:w=2,latency_ms=300"),
        ("elastic", "elastic:latency_s=0.3"),
        ("drs:observed=1", "drs:observed=1,latency_ms=300"),
        ("dr-stream", "dr-stream:latency_ms=300"),
        ("cardellini", "cardellini:latency_s=0.3"),
    ],
)
def test_a_latency_is_given_to_any_policy_that_has_such_a_target(word: str, becomes: str) -> None:
    assert with_targets(word, latency_ms=300) == becomes
    make_policy(becomes)


def test_without_a_target_a_word_stays_as_it_is() -> None:
    assert with_targets("psps") == "psps"
    assert with_targets("autrascale", per_second=500) == "autrascale:per_second=500"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            "psps",
            "has no target latency_ms, got 300; those that have one: autrascale, elastic, dr-stream, cardellini, drs",
        ),
        ("elastic:latency_s=1", "latency_ms is said twice"),
        ("elastics", "did you mean 'elastic'"),
    ],
)
def test_a_target_that_cannot_be_is_explained(word: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        with_targets(word, latency_ms=300)


def test_a_target_of_nothing_is_refused_by_the_policy() -> None:
    with pytest.raises(SettingError, match="latency_ms must be more than 0"):
        with_targets("autrascale", latency_ms=0)


def flow() -> Topology:
    made = Topology("aimed")
    made.source("in", sources.replay(constant(50, 10.0)))
    made.batch("work", lambda batch: batch, after="in", replicas=(1, 4))
    made.output("out", after="work")
    return made


def test_a_run_gives_its_target_to_the_policy() -> None:
    handle = LocalEngine(virtual=True).start(flow(), policy="autrascale", latency_ms=250.0, per_second=80.0, td_s=5.0)
    handle.await_end(60.0)
    handle.stop()
    assert handle.policy == "autrascale:latency_ms=250"


def test_a_target_needs_a_policy_by_its_name() -> None:
    for policy, got in ((None, "got none"), (Psps(), "got Psps, an object")):
        with pytest.raises(SettingError, match=got):
            LocalEngine(virtual=True).start(flow(), policy=policy, latency_ms=250.0)


def test_commands_take_the_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["wordcount", "--trace", "constant:per_second=50,seconds=10", "--report", str(tmp_path)]
    assert main(["simulate", *where, "--latency-ms", "300"]) == 0
    assert '"policy": "elastic:latency_s=0.3"' in (tmp_path / "report.json").read_text()
    assert main(["simulate", *where, "--policy", "psps", "--latency-ms", "300"]) == 2
    assert "'psps': has no target latency_ms" in capsys.readouterr().err
    assert main(["run", "wordcount", "--policy", "none", "--latency-ms", "300"]) == 2
    assert "--latency-ms needs a policy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ([], "elastic"),
        (["--latency-ms", "300"], "elastic:latency_s=0.3"),
        (["--policy", "psps"], "psps"),
        (["--policy", "none"], None),
        (["--replicas", "count=3@10"], None),
        (["--replicas", "count=3@10", "--policy", "elastic"], "elastic"),
    ],
)
def test_elastic_decides_unless_another_policy_or_none_is_named_or_replicas_are_set_by_hand(
    words: list[str], policy: str | None
) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert chosen_policy(parser.parse_args(["wordcount", *words])) == policy


def test_an_application_is_run_with_elastic_unless_something_else_is_said() -> None:
    assert inspect.signature(start).parameters["policy"].default == "elastic"
