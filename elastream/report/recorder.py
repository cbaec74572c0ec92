"""The recorder of a run: engine and simulator feed it with what happens, and a report is made of its record."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from elastream.control import Decision, JournalEntry, Observation, StateMoved
from elastream.control.diagnosis import Verdicts
from elastream.control.refusals import Refusals
from elastream.report.latency import Latencies
from elastream.report.record import Record, Rescale
from elastream.report.remarks import remarks
from elastream.report.samples import fleet_sample, health_sample, load_sample
from elastream.report.series import Sample

APPLYING = 3
"""Ticks that apply a change: the one that commits it, and two whose works route by it and serve the new lanes."""


@dataclass
class _Pause:
    """A change of replicas whose ticks are not all known."""

    tick: int
    """The one that commits it."""
    longest_ms: float = 0.0


class RunRecorder:
    """Writes the record of one run. All times are in seconds since the run began."""

    def __init__(self, name: str, sources: tuple[str, ...], pools: dict[str, int]) -> None:
        """`pools`: the operators whose replicas can be changed, and the most each may have."""
        self.record = Record(name, sources, pools=pools)
        self._pauses: list[_Pause] = []
        self._refusals, self._verdicts = Refusals(), Verdicts()

    def add_samples(self, t_s: float, samples: Mapping[str, Sample], latencies: Latencies) -> None:
        """The counts of each operator, and the latencies of the tuples that finished, since the samples before."""
        for name, sample in samples.items():
            self.record.series.add(name, sample)
            self.record.late[name] += sample.late
        self.record.latencies.merge(latencies)
        self.record.latency_line.add(t_s, latencies)

    def add_ticks(self, first: int, lengths_ms: Sequence[float]) -> None:
        """The lengths of neighbouring ticks, `first` being the number of the first. Ticks may be left out."""
        self.record.tick_ms.extend(lengths_ms)
        after = first + len(lengths_ms)
        for pause in self._pauses:
            lengths = lengths_ms[max(0, pause.tick - first) : max(0, pause.tick + APPLYING - first)]
            pause.longest_ms = max([pause.longest_ms, *lengths])
        self._note_pauses([pause for pause in self._pauses if pause.tick + APPLYING <= after])

    def add_rescales(self, tick: int, rescales: Sequence[Rescale]) -> None:
        """Changes of replicas that the tick with this number commits. Called before its length is added."""
        self.record.rescales.extend(rescales)
        if rescales:
            self._pauses.append(_Pause(tick))

    def add_state_moves(self, t_s: float, moves: Iterable[StateMoved]) -> None:
        self.record.state_moves.extend({"t_s": t_s, **asdict(moved)} for moved in moves)

    def add_decision(self, t_s: float, entry: JournalEntry) -> None:
        """The explanations of an interval, and how loaded and healthy the replicas were."""
        record, observation = self.record, entry.observation
        load, fleet = load_sample(t_s, observation), fleet_sample(t_s, entry)
        if load is not None:
            record.loads.append(load)
        if fleet is not None:
            record.fleet.append(fleet)
        record.healths.append(health_sample(t_s, observation))
        if entry.warning:
            record.warnings.append(entry.warning)
        if entry.proposal is not None and entry.proposal.search is not None:
            record.searches.append({"t_s": t_s, **asdict(entry.proposal.search)})
        record.remarks.extend((t_s, kind, words) for kind, words in remarks(entry, self._refusals))
        self.diagnose(observation, entry.decisions)

    def diagnose(self, observation: Observation, decisions: tuple[Decision, ...] = ()) -> None:
        """Say which operator holds the others up, over the whole run."""
        self._verdicts.add(observation, decisions)
        self.record.verdict = self._verdicts.summary()

    def end(self) -> None:
        """No tick comes any more."""
        self._note_pauses(list(self._pauses))

    def _note_pauses(self, pauses: Sequence[_Pause]) -> None:
        self.record.rescale_ticks_ms.extend(pause.longest_ms for pause in pauses if pause.longest_ms)
        self._pauses = [pause for pause in self._pauses if pause not in pauses]
