"""The files of a new application: `elastream new` fills in its name."""

APP = '''"""{name}: counts the clicks of every page, without those of robots.

    elastream run app.py:topology
"""

from dataclasses import dataclass

from elastream import Topology, sources, workload

PAGES = ("/home", "/shop", "/cart", "/help")
USERS = ("ann", "bob", "eve", "robot")


def make_clicks(numbers):
    """Columns of the clicks with these numbers. `sources.kafka(...)` reads real ones from a topic instead."""
    return {{"user": [USERS[n % 4] for n in numbers], "page": [PAGES[n // 4 % 4] for n in numbers]}}


def is_human(row):
    return row["user"] != "robot"


@dataclass
class Clicks:
    """The state of one page."""

    clicks: int = 0


def count_page(page, rows, state):
    """Called with the new clicks of one page. `state` is kept when replicas change and after a crash."""
    state.clicks += len(rows)
    yield {{"page": page, "clicks": state.clicks}}


def topology(arrivals=None):
    """`arrivals` says when clicks come; --trace of the command line replaces it."""
    app = Topology("{name}")
    clicks = arrivals or workload.steps([100, 1000, 100], seconds=30)
    people = app.source("clicks", sources.replay(clicks, "user string, page string", make_clicks)).filter(
        "people", is_human, replicas=(1, 4)
    )
    counts = people.key_by("page").process(
        "count", count_page, state=Clicks, schema="page string, clicks long", replicas=(1, 4)
    )
    counts.output("pages")
    return app
'''

TEST = '''"""Tests of {name}, without Spark and in virtual time: `pytest`."""

from app import is_human, topology

from elastream import workload
from elastream.testing import LocalEngine


def test_robots_are_left_out():
    assert is_human({{"user": "ann", "page": "/home"}})
    assert not is_human({{"user": "robot", "page": "/home"}})


def test_every_click_of_a_person_is_counted_once(tmp_path):
    clicks = workload.constant(per_second=100, seconds=4)
    with LocalEngine(virtual=True).start(topology(clicks), str(tmp_path), policy="elastic") as handle:
        assert handle.await_end(60)
        counted = {{row["page"]: row["clicks"] for row in handle.state("count").to_pylist()}}
        audit = handle.audit()
    # 400 clicks, a quarter of them by robots, on four pages in turn.
    assert counted == {{"/home": 75, "/shop": 75, "/cart": 75, "/help": 75}}
    assert audit.problems == () and audit.queued == 0
'''

README = """# {name}

Counts the clicks of every page, without those of robots. `app.py` declares the graph, `test_app.py` tests it.

    pytest                                              # the tests, without Spark
    elastream run app.py:topology --base {name}-base    # on Spark; the same base goes on where it was
    elastream watch {name}-base                         # the same run from a second terminal
"""

FILES = {"app.py": APP, "test_app.py": TEST, "README.md": README}
