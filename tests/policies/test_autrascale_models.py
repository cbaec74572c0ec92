"""What AuTraScale has learned, on disk: written and read, damaged, listed, and kept by a run."""

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from elastream import Topology, sources
from elastream.cli.main import main
from elastream.errors import Damaged
from elastream.lanes import Store
from elastream.policies.autrascale import BenefitModel, Sample
from elastream.policies.model_library import ModelLibrary, decode, encode
from elastream.testing import LocalEngine
from elastream.workload import constant

MODEL = BenefitModel(
    ("a", "b"),
    123.456,
    (2, 3),
    (8, 9),
    (Sample((2, 3), 0.45, 123.0), Sample((8, 9), inf, 99.5), Sample((4, 4), 0.2, 1)),
)


def test_a_model_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    library = ModelLibrary(Store(str(tmp_path)))
    library.write("my app/x", (MODEL, replace(MODEL, per_second=20.0, samples=())))
    assert library.names() == ["my app/x@20", "my app/x@123.456"]
    assert ModelLibrary(Store(str(tmp_path))).of("my app/x")[1] == MODEL
    assert library.of("my app") == ()


def test_a_damaged_model_is_named_and_the_others_are_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library = ModelLibrary(Store(str(tmp_path)))
    library.write("app", (MODEL, replace(MODEL, per_second=20.0)))
    file = tmp_path / "models" / "app@20.arrow"
    data = bytearray(file.read_bytes())
    place = data.index(np.float64(0.45).tobytes())
    data[place] ^= 1
    file.write_bytes(bytes(data))
    assert library.of("app") == (MODEL,)
    assert "app@20.arrow: is not a whole elastream-benefit-model" in caplog.text
    for cut in (0, 10, len(data) // 2):
        with pytest.raises(Damaged, match="remove it, and it is learned again"):
            decode(encode(MODEL)[:cut], "here")


def test_models_are_listed_shown_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ModelLibrary(Store(str(tmp_path))).write("app", (MODEL,))
    assert main(["models", str(tmp_path)]) == 0
    assert "app@123.456" in capsys.readouterr().out
    assert main(["models", str(tmp_path), "app@123.456"]) == 0
    assert "450" in capsys.readouterr().out
    assert main(["models", str(tmp_path), "app@99"]) == 2
    assert "there are: app@123.456" in capsys.readouterr().err
    assert main(["models", str(tmp_path), "app@123.456", "--remove"]) == 0
    assert main(["models", str(tmp_path)]) == 0
    assert "no models in" in capsys.readouterr().out


def test_a_run_leaves_its_models_in_its_base_and_in_the_library(tmp_path: Path) -> None:
    flow = Topology("kept")
    flow.source("in", sources.replay(constant(50, 60.0)))
    flow.batch("work", lambda batch: batch, after="in", replicas=(1, 4), start=4)
    graph = flow.output("out", after="work").topology.build()
    base, shared = str(tmp_path / "base"), str(tmp_path / "shared")
    handle = LocalEngine(virtual=True).start(graph, base, policy="autrascale", td_s=5.0, models=shared)
    handle.await_end(60.0)
    handle.stop()
    kept = ModelLibrary(Store(shared)).of("kept")
    assert [model.base for model in kept] == [(1,)] and kept[0].samples
    assert ModelLibrary(Store(base)).of("kept") == kept
