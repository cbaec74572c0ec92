"""`elastream.simulate`: an application of one's own on a model, without the command line."""

import pytest

from elastream import Topology, simulate, sources
from elastream.errors import SettingError
from elastream.workload import constant


def flow() -> Topology:
    app = Topology("mine")
    app.source("in", sources.replay(constant(10, 5)))
    app.map("slow", lambda row: row, after="in", replicas=(1, 8), waits=True)
    app.output("out", after="slow")
    return app


def test_an_application_is_simulated_with_the_times_that_are_given() -> None:
    done = simulate(flow(), "constant:per_second=400,seconds=20", service_s={"slow": 0.01}, seed=1)
    assert done.events.entered == done.events.finished == 8000
    most = max(sample.replicas for sample in done.record.series.operators["slow"])
    # 400 a second of 10 ms each take four replicas and a little more.
    assert 5 <= most <= 8
    again = simulate(flow(), "constant:per_second=400,seconds=20", service_s={"slow": 0.01}, seed=1)
    assert again.record.latencies.buckets == done.record.latencies.buckets


def test_a_policy_and_its_interval_are_chosen_by_the_caller() -> None:
    done = simulate(flow(), service_s={"slow": 0.001}, policy="static:replicas=3", td_s=2.0)
    assert {sample.replicas for sample in done.record.series.operators["slow"]} == {3}
    assert done.record.interval_s == 2.0 and done.events.entered == 50


@pytest.mark.parametrize(
    ("service_s", "message"),
    [
        ({}, "nothing is known of operator 'slow'; give its seconds per tuple as service_s="),
        ({"slwo": 0.1}, "service_s: no operator 'slwo'; there are in, slow"),
    ],
)
def test_times_that_are_missing_or_misspelt_are_one_line(service_s: dict[str, float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        simulate(flow(), service_s=service_s)
