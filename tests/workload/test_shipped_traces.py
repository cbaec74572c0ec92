"""The traces that ship: all there, and from where."""

import numpy as np
import pytest

from elastream.errors import SettingError
from elastream.workload import load_trace, provenance, trace_names


@pytest.mark.parametrize("name", trace_names())
def test_a_shipped_trace_loads_is_small_and_says_where_it_is_from(name: str) -> None:
    trace = load_trace(name)
    assert trace.total > 10_000
    assert np.ptp(np.diff(trace.ends_s)) == 0
    origin = provenance(name)
    assert len(origin.what) > 30
    assert any(licence in origin.source for licence in ("MIT", "CC-BY-4.0", "free to redistribute"))


@pytest.mark.parametrize(
    ("name", "total", "seconds"),
    [
        ("aapl_tweets_spike", 118_140, 86_400),
        ("azure_llm_conv", 19_366, 3_502),
        ("covid_tweets", 26_022, 2_700),
        ("elb_requests", 117_154, 604_800),
        ("nasa95_launchday", 134_204, 86_400),
        ("nyc_taxi_day", 748_567, 86_400),
        ("nyc_taxi_next_day", 761_596, 86_400),
        ("worldcup98_day", 37_859_223, 86_400),
        ("worldcup98_matchday", 37_738_625, 43_200),
        ("worldcup98_next_day", 35_882_130, 86_400),
    ],
)
def test_a_shipped_trace_has_the_tuples_of_its_original(name: str, total: int, seconds: float) -> None:
    trace = load_trace(name)
    assert (trace.total, trace.seconds) == (total, seconds)


def test_a_trace_without_a_row_in_the_table_is_named() -> None:
    with pytest.raises(SettingError, match=r"^trace 'mars': no row in the table of shipped traces, which are aapl_"):
        provenance("mars")
