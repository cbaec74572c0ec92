"""A scenario: one run of a bench, in words and numbers. Everything is checked before anything is started."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_type_hints

from elastream.applications.load import find_app, parameters_of
from elastream.applications.sizes import Sizes
from elastream.control import Guards, checked_td
from elastream.errors import SettingError
from elastream.policies import make_policy
from elastream.settings import QueueSettings, Settings
from elastream.simulator.queue_weighted import QueueWeighted
from elastream.workload import Arrivals, in_bursts, parse_workload

APP_OPTIONS = (
    *("payload", "database", "service_ms", "grouping", "pool", "start"),
    *("zipf", "vocabulary", "top", "model", "lattice"),
)
"""Fields of a scenario that are options of its application."""

PAPER_COLUMNS = (
    *("saved", "degradation", "processed", "latency ms", "output/s", "lb of machines", "fullest"),
    *("healthy to/s", "machines", "most replicas", "replicas"),
    *("K_s", "τ s", "AI-SPS", "queue, latency: r", "queue, latency: ρ", "output, queue: r", "output, queue: ρ"),
    *("end latency ms", "end output/s", "end replicas", "base runs", "iterations", "samples", "score"),
)


@dataclass(frozen=True)
class Scenario:
    """An application, what arrives, who decides, and the parameters."""

    name: str
    app: str = "tweets"
    """A built-in, file.py:name or module:name."""
    workload: str | None = None
    """A trace's name, a CSV file or a shape; None: the application's own."""
    speed: float = 1.0
    """Compresses a trace's time."""
    scale: float = 1.0
    """Multiplies what arrives."""
    burst_s: float | None = None
    """The tuples of so many seconds come at once, at their beginning; None: evenly."""
    spikes: tuple[str, ...] = ()
    seed: int = 0
    policy: str = "psps"
    td_s: float | None = None
    """Seconds between two decisions; None: the policy's own pace, or 5 s if it has none."""
    q_size: int | None = None
    on_full: Literal["wait", "drop"] = "wait"
    t_out_s: float | None = None
    in_flight: int | None = None
    """Of a simulated Storm, its max spout pending: a spout holds tuples back while so many are not acknowledged."""
    spout_size: int | None = None
    """The most tuples that such a spout holds back; what comes then is dropped. None: no limit."""
    acked: Literal["last", "first"] = "last"
    """Of a simulated Storm, by which operator a tuple is acknowledged; by the first where operators do not anchor. Its
    latency ends then."""
    slots: int | None = None
    cooldown_s: float = 0.0
    largest_step: int | None = None
    slack: float = Guards.slack
    seconds: float | None = None
    """Stop after this time; None: when all has been read, or a little later."""
    r_over: int | None = None
    """What a run sized for the peak needs; None: reckoned from the run."""
    window_s: float | None = None
    """Input and output are compared over windows of this length; None: over intervals, which scenarios may differ in."""
    payload: str | None = None
    database: str | None = None
    service_ms: float | None = None
    grouping: str | None = None
    pool: Sizes | None = None
    start: Sizes | None = None
    zipf: float | None = None
    vocabulary: int | None = None
    top: int | None = None
    model: str | None = None
    lattice: int | None = None
    models: str | None = None
    """A name: what a policy learns in a scenario is known in those after it that have the same."""
    paper: tuple[tuple[str, float], ...] = ()
    """What a paper has for it, by the names of columns."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingError("expected a name that is not empty")
        make_policy(self.policy)
        checked_td(self.td_s)
        self.settings()
        self.guards()
        if self.r_over is not None and self.r_over < 1:
            raise SettingError(f"r_over must be 1 or more, got {self.r_over}")
        if self.window_s is not None and not self.window_s > 0:
            raise SettingError(f"window_s must be more than 0, got {self.window_s}")
        for key in ("in_flight", "spout_size"):
            if getattr(self, key) is not None and getattr(self, key) < 1:
                raise SettingError(f"{key} must be 1 or more, got {getattr(self, key)}")
        if self.spout_size is not None and self.in_flight is None:
            raise SettingError("spout_size is how much a spout holds back; set in_flight, or it holds nothing back")
        if self.seconds is not None and not self.seconds > 0:
            raise SettingError(f"seconds must be more than 0, got {self.seconds}")
        if self.workload is None and (self.speed, self.scale, self.spikes, self.burst_s) != (1.0, 1.0, (), None):
            raise SettingError("speed, scale, spikes and burst_s change a workload; name one")

    def settings(self) -> Settings:
        return Settings(queues=QueueSettings(q_size=self.q_size, on_full=self.on_full, t_out_s=self.t_out_s))

    def guards(self) -> Guards:
        return Guards(self.slots, self.cooldown_s, self.largest_step, self.slack)

    def arrivals(self) -> Arrivals | None:
        if self.workload is None:
            return None
        found = parse_workload(self.workload, speed=self.speed, scale=self.scale, spikes=self.spikes, seed=self.seed)
        return in_bursts(found, self.burst_s) if self.burst_s is not None else found

    def app_options(self) -> dict[str, Any]:
        return {option: getattr(self, option) for option in APP_OPTIONS if getattr(self, option) is not None}


def check_storm_keys(scenario: Scenario) -> None:
    """Refuse what only a simulated Storm has, for any other plant."""
    if scenario.in_flight is not None or scenario.acked != "last":
        raise SettingError(
            f"scenario {scenario.name!r}: in_flight and acked are of a simulated Storm; run it with --plant simulator --system storm"
        )
    if scenario.grouping == QueueWeighted.name:
        raise SettingError(
            f"scenario {scenario.name!r}: grouping {scenario.grouping} is of a simulated Storm only; "
            "use least_loaded, or run it with --plant simulator --system storm"
        )


def options_of(scenario: Scenario, database: str) -> dict[str, object]:
    """The options of a scenario's application. One that stores results stores them in `database`."""
    options = scenario.app_options()
    if "database" in parameters_of(find_app(scenario.app)):
        options["database"] = database
    return options


def scenario_from(values: Mapping[str, Any]) -> Scenario:
    """Keys and types are checked here; the words in them by the scenario itself."""
    types = get_type_hints(Scenario)
    for key, value in values.items():
        if key not in types:
            close = get_close_matches(str(key), types, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(types)}"
            raise SettingError(f"unknown key {key!r}; {hint}")
        _check(key, value, types[key])
    for field in fields(Scenario):
        if field.default is MISSING and field.name not in values:
            raise SettingError(f"expected a {field.name}")
    given = dict(values)
    if "spikes" in given:
        given["spikes"] = tuple(given["spikes"])
    if "paper" in given:
        given["paper"] = tuple(given["paper"].items())
    return Scenario(**given)


def _check(key: str, value: Any, kind: Any) -> None:
    if key == "spikes":
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
            raise SettingError(f"spikes: expected a list of words, got {value!r}")
        return
    if key == "paper":
        if not isinstance(value, dict) or set(value) - set(PAPER_COLUMNS):
            raise SettingError(f"paper: expected numbers for {', '.join(PAPER_COLUMNS)}, got {value!r}")
        return
    allowed = get_args(kind) or (kind,)
    words = [choice for choice in allowed if isinstance(choice, str)]
    if words:
        if value not in words:
            raise SettingError(f"{key}: expected {' or '.join(words)}, got {value!r}")
        return
    if isinstance(value, bool) or not isinstance(value, tuple(allowed)):
        # A whole number will do where any number is wanted.
        if float in allowed and isinstance(value, int) and not isinstance(value, bool):
            return
        names = {str: "a word", int: "a whole number", float: "a number"}
        wanted = " or ".join(names[choice] for choice in allowed if choice in names)
        raise SettingError(f"{key}: expected {wanted}, got {value!r}")
