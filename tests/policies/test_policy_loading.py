"""Policies of users: from a file, a module or an entry point, wherever a policy has a name."""

import inspect
import json
import sys
from pathlib import Path

import pytest

import elastream
from elastream import Policy, Proposal, Topology, sources
from elastream.cli.main import main
from elastream.control import Observation, read_run
from elastream.errors import SettingError
from elastream.extensions import installed
from elastream.policies import POLICIES, make_policy, policy_names, with_latency, with_targets
from elastream.testing import LocalEngine
from elastream.workload import constant
from elastream_lab.bench.suites.scenario import Scenario
from elastream_lab.bench.suites.suite import load_suite

MINE = """
from elastream import Policy, Proposal, Want

print("loaded")

class Mine(Policy):
    targets = ("latency_s",)

    def __init__(self, size=2, latency_s: float = 1.0, label: str = "", calm: bool = False):
        self.size, self.latency_s, self.label, self.calm = size, latency_s, label, calm

    def propose(self, observation):
        return Proposal(tuple(Want(o.operator, self.size, "mine") for o in observation.scalable()))

class Needs(Mine):
    def __init__(self, target_s):
        super().__init__()

class Raises(Mine):
    def __init__(self):
        raise ValueError("no luck")

class Silent(Policy):
    pass

class Stranger:
    def propose(self, observation):
        return Proposal()

class Wrong(Mine):
    targets = ("latency",)

class Plain:
    pass

number = 3
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return str(path)


def flow() -> Topology:
    made = Topology("flow")
    made.source("in", sources.replay(constant(20, 20)))
    made.map("same", lambda row: row, after="in", replicas=(1, 4)).output("out")
    return made


def test_a_class_in_a_file_or_a_module_is_a_policy_with_parameters(
    mine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_policy(f"{mine}:Mine:size=3,latency_s=0.5,label=x,calm=true")
    assert vars(made) == {"size": 3, "latency_s": 0.5, "label": "x", "calm": True}
    assert made.name == "Mine" and made.start is None and made.every_s is None and made.models is None
    # A file that is named again is not run again.
    assert type(make_policy(f"{mine}:Mine")) is type(made) and capsys.readouterr().out == "loaded\n"
    monkeypatch.chdir(Path(mine).parent)
    monkeypatch.delitem(sys.modules, "mine")
    assert make_policy("mine:Mine").name == "Mine"
    assert make_policy("mine.py:Mine:size=4").size == 4  # type: ignore[attr-defined]
    assert make_policy("elastream.policies.psps:Psps:growth=1").name == "psps"


def test_a_file_that_has_changed_is_loaded_anew(mine: str) -> None:
    assert make_policy(f"{mine}:Mine").size == 2  # type: ignore[attr-defined]
    Path(mine).write_text(MINE.replace("size=2", "size=23"))
    assert make_policy(f"{mine}:Mine").size == 23  # type: ignore[attr-defined]


def test_targets_reach_the_parameters_that_a_class_names(mine: str) -> None:
    assert with_targets(f"{mine}:Mine", latency_ms=300) == f"{mine}:Mine:latency_s=0.3"
    assert with_targets(f"{mine}:Mine:size=3", latency_ms=300) == f"{mine}:Mine:size=3,latency_s=0.3"
    assert with_latency(f"{mine}:Mine", 2.0) == f"{mine}:Mine:latency_s=2"
    assert with_latency("psps", 2.0) == "psps"
    with pytest.raises(SettingError, match="has no target per_second, got 9; those that have one: autrascale"):
        with_targets(f"{mine}:Mine", per_second=9)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("elastix", "no policy 'elastix'; did you mean 'elastic'? there are psps, static"),
        ("elastix:latency_s=1", "no policy 'elastix'; did you mean 'elastic'?"),
        ("", "no policy ''; there are psps"),
        ("nowhere.py:Mine", "no file nowhere.py"),
        ("no_such_module:Mine", "No module named 'no_such_module'; give a file as path/to/file.py:name"),
        ("MINE:Nine", "has no 'Nine'; did you mean 'Mine'?"),
        ("MINE:zzz", "has no 'zzz'; policies in it: Mine, Needs, Raises"),
        ("MINE:number", "expected a class, got int; name a subclass of elastream.Policy"),
        ("MINE:Silent", "Silent has no propose; write propose(self, observation) -> Proposal"),
        ("MINE:Plain", "Plain has no propose; write propose(self, observation) -> Proposal"),
        ("MINE:Stranger", "Stranger is no Policy; write class Stranger(elastream.Policy)"),
        ("MINE:Wrong", "targets has 'latency'; expected parameters of Wrong, of latency_s, latency_ms, per_second"),
        ("MINE:Needs", "target_s is missing; write MINE:Needs:target_s=..."),
        ("MINE:Raises", "Raises could not be made: ValueError: no luck"),
        ("MINE:Mine:height=3", "'height=3' is no parameter=number; there are size, latency_s, label, calm"),
        ("MINE:Mine:size=big", "size must be a number, got 'big'"),
        ("MINE:Mine:calm=perhaps", "calm must be true or false, got 'perhaps'"),
        ("threshold:high", "'high' is no parameter=number; there are high, low"),
    ],
)
def test_whatever_is_wrong_with_a_policy_is_said_in_one_line(mine: str, word: str, message: str) -> None:
    with pytest.raises(SettingError) as error:
        make_policy(word.replace("MINE", mine))
    assert message.replace("MINE", mine) in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_cannot_be_run_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import elastream\n1 / 0\n")
    with pytest.raises(SettingError, match=r"its import failed: ZeroDivisionError: division by zero at .*broken\.py:2"):
        make_policy(f"{tmp_path}/broken.py:Mine")
    assert "broken" not in sys.modules


def test_objects_must_be_of_a_subclass_of_policy() -> None:
    class Duck:
        name = "duck"

        def propose(self, observation: Observation) -> Proposal:
            return Proposal()

    class Real(Policy):
        def propose(self, observation: Observation) -> Proposal:
            return Proposal()

    engine = LocalEngine(virtual=True)
    with pytest.raises(SettingError, match=r"got Duck; write class Duck\(Policy\) with propose\(observation\)"):
        engine.start(flow(), policy=Duck())
    with pytest.raises(SettingError, match=r"policy: got the class Real; pass an object, Real\(...\)"):
        engine.start(flow(), policy=Real)
    with pytest.raises(SettingError, match="no policy 'psp'; did you mean 'psps'"):
        engine.start(flow(), policy="psp")


def test_every_policy_is_a_subclass_and_the_base_class_explains_all_hooks() -> None:
    assert all(isinstance(make_policy(name), Policy) for name in POLICIES)
    hooks = {name for name, value in vars(Policy).items() if not name.startswith("_")} - {"propose"}
    assert hooks == {"name", "start", "every_s", "targets", "foresee", "models", "recall", "wrap"}
    assert all(f"\n{hook} " in (inspect.getdoc(Policy) or "") for hook in hooks)
    for name in ("Policy", "Proposal", "Want", "Home", "LevelWant", "Observation", "OperatorObservation"):
        assert name in elastream.__all__ and hasattr(elastream, name)


def test_packages_add_policies_by_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def package(name: str, place: str, *, policy: str = "theirs") -> None:
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[elastream.policies]\n{policy} = {place}\n")

    (tmp_path / "their_policies.py").write_text(MINE)
    package("theirs", "their_policies:Mine")
    # A name that is built in stays what it is.
    package("hijack", "their_policies:Mine", policy="psps")
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    try:
        assert "theirs" in policy_names() and policy_names().count("psps") == 1
        assert make_policy("theirs:size=5").size == 5  # type: ignore[attr-defined]
        assert make_policy("psps").name == "psps"
        with pytest.raises(SettingError, match="did you mean 'theirs'"):
            make_policy("their")
        package("others", "their_policies:Needs")
        installed.cache_clear()
        with pytest.raises(SettingError, match="2 packages have a 'theirs'; write their_policies:Mine or their"):
            make_policy("theirs")
    finally:
        installed.cache_clear()


def test_run_replay_and_suites_take_a_class_in_a_file(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = tmp_path / "base"
    with LocalEngine(virtual=True).start(flow(), str(base), policy=f"{mine}:Mine:size=3", td_s=2.0) as handle:
        handle.await_end(60)
    assert read_run(str(base), "test")[-1].policy == "Mine"
    capsys.readouterr()
    assert main(["replay", str(base), "--policy", f"{mine}:Mine:size=4", "--json"]) == 0
    played = json.loads(capsys.readouterr().out)
    assert {decision["would_be"] for decision in played["decisions"]} == {4}
    assert Scenario("a", policy=f"{mine}:Mine").policy == f"{mine}:Mine"
    suite = tmp_path / "own.yaml"
    suite.write_text(f'title: own\nscenarios:\n  - {{name: a, policy: "{mine}:Mine:size=2"}}\n')
    assert load_suite(str(suite)).scenarios[0].policy == f"{mine}:Mine:size=2"


def test_simulate_and_tournament_take_a_class_in_a_file(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = "constant:per_second=50,seconds=20"
    words = [
        "--policy",
        f"{mine}:Mine:size=3",
        "--latency-ms",
        "300",
        "--trace",
        trace,
        "--report",
        str(tmp_path / "r"),
    ]
    assert main(["simulate", "tweets", *words, "--service-ms", "5", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.replace("loaded\n", ""))
    assert report["policy"] == "Mine" and {decision["after"] for decision in report["decisions"]} == {3}
    words = ["--trace", trace, "--seconds", "20", "--jobs", "1", "--report", str(tmp_path / "t"), "--json"]
    assert main(["tournament", f"{mine}:Mine:size=3", *words]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert [entry["policy"] for entry in entries] == ["oracle", f"{mine}:Mine:size=3"]
