"""The store of states: by operator and key group, each change whole, nothing left behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from routes import PATIENT

from elastream.engine.worker.state_works import apart
from elastream.errors import BaseUnusable
from elastream.lanes.runs import packed
from elastream.lanes.segment_files import Written
from elastream.lanes.segments import STATE, Appended, SchemaId, Slice
from elastream.lanes.state_sums import GroupSums, unpacked_sums
from elastream.state.changelog import changes_in, to_batch
from elastream.state.store import LONGEST_KEY, Change, StateStore

KEYS = st.sampled_from([b"a", b"b", b"ab", b"\xff", b"", b"x" * LONGEST_KEY, b"y" * (LONGEST_KEY + 1), b"z" * 5000])
CHANGES = st.lists(st.tuples(st.sampled_from([0, 1, 126, 127]), KEYS, st.none() | st.binary(max_size=6)), max_size=30)


@pytest.fixture
def states(tmp_path: Path) -> StateStore:
    return StateStore(["count", "last"], str(tmp_path))


def told(states: StateStore, operator: str) -> dict[tuple[int, bytes], bytes]:
    return {(group, key): record for group in range(128) for key, record in states.group(operator, group)}


@PATIENT
@given(
    batches=st.lists(CHANGES, max_size=4), replaced=st.sampled_from([0, 1, 127]), forgotten=st.sampled_from([0, 127])
)
def test_a_store_has_what_was_put_into_it_by_group(batches: list[list[Change]], replaced: int, forgotten: int) -> None:
    states, expected = StateStore(["count", "last"]), dict[tuple[int, bytes], bytes]()
    for changes in batches:
        states.write("count", changes)
        for group, key, record in changes:
            expected.pop((group, key), None)
            if record is not None:
                expected[group, key] = record
    assert told(states, "count") == expected and told(states, "last") == {}
    with states.reading("count") as reading:
        assert all(reading.get(*place) == record for place, record in expected.items())
        assert reading.get(5, b"nobody") is None
    others = {place: record for place, record in expected.items() if place[0] != replaced}
    states.replace_group("count", replaced, [(b"new", b"1"), (b"k" * 1000, b"2")])
    expected = others | {(replaced, b"new"): b"1", (replaced, b"k" * 1000): b"2"}
    assert told(states, "count") == expected
    states.forget("count", [forgotten])
    assert told(states, "count") == {place: record for place, record in expected.items() if place[0] != forgotten}
    states.close()


def test_what_a_group_amounts_to_does_not_depend_on_the_order(states: StateStore) -> None:
    states.write("count", [(1, b"a", b"12"), (1, b"b", b"3"), (2, b"a", b"12")])
    states.write("last", [(1, b"b", b"3"), (1, b"a", b"12")])
    one, other = states.facts("count", 1), states.facts("last", 1)
    assert one == other and (one.keys, one.size) == (2, 5)
    states.write("last", [(1, b"a", b"13")])
    assert states.facts("last", 1) != one
    # Where a key ends and its record begins counts too.
    states.write("last", [(3, b"ab", b"c")])
    states.write("count", [(3, b"a", b"bc")])
    assert states.facts("last", 3).checksum != states.facts("count", 3).checksum


@PATIENT
@given(changes=CHANGES)
def test_what_a_group_amounts_to_is_that_of_its_records_whatever_happened_to_them(changes: list[Change]) -> None:
    """However a state came about, a store that got it whole has the same facts."""
    grown, whole = StateStore(["count"]), StateStore(["count"])
    for change in changes:
        grown.write("count", [change])
    for group in {change[0] for change in changes}:
        whole.replace_group("count", group, grown.group("count", group))
        assert grown.facts("count", group) == whole.facts("count", group)
        assert grown.facts("count", group).keys == len(grown.group("count", group))
    grown.close()
    whole.close()


@PATIENT
@given(changes=CHANGES, groups=st.frozensets(st.sampled_from([0, 1, 126, 127])))
def test_a_changelog_gives_back_the_changes_of_the_groups_that_are_asked_for(
    changes: list[Change], groups: frozenset[int]
) -> None:
    batch, runs = to_batch(changes)
    piece = Slice("s", 0, 0, 0, SchemaId("s"), 0, batch.num_rows, runs)
    expected = [change for change in changes if change[0] in groups]
    assert list(changes_in(batch, piece, groups)) == sorted(expected, key=lambda change: change[0])


def test_a_store_has_no_files_that_outlive_its_process(tmp_path: Path) -> None:
    program = (
        "import os, sys; from elastream.state.store import StateStore\n"
        f"states = StateStore(['a'], {str(tmp_path)!r}); states.write('a', [(1, b'k', b'v')])\n"
        f"print(os.listdir({str(tmp_path)!r}), states.group('a', 1)); sys.stdout.flush(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[] [(b'k', b'v')]", done.stderr
    assert done.returncode == -9 and os.listdir(tmp_path) == []


def test_a_disk_without_room_is_said_in_one_line_before_it_ends_the_process(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("no disk of its own can be had here")
    try:
        states = StateStore(["count"], str(tmp_path))
        with pytest.raises(BaseUnusable, match=r"state of 'count': the disk .* has less than 64 MiB left; make room"):
            for number in range(2000):
                states.write("count", [(number % 128, f"{number}-{n}".encode(), b"x" * 400) for n in range(100)])
        assert states.group("count", 0), "what was written before is there"
        states.close()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=False)


def test_a_store_does_not_grow_past_its_bound_and_has_what_it_had(tmp_path: Path) -> None:
    states = StateStore(["count", "last"], str(tmp_path), most_bytes=1 << 20)
    written = dict[tuple[int, bytes], bytes]()
    with pytest.raises(
        BaseUnusable,
        match=r"^state of 'count': this host would remember more than StateSettings\(bytes_per_host=1_048_576\) allows; start again",
    ):
        for number in range(10_000):
            changes = [(number % 128, f"{number}-{n}".encode(), b"x" * 100) for n in range(10)]
            states.write("count", changes)
            written |= {(group, key): record for group, key, record in changes}
    # A quarter of the bound is records at least; the rest is keys, pages that are not full, and those of the change before.
    assert len(written) * 100 > 1 << 18 and told(states, "count") == written
    with pytest.raises(BaseUnusable, match="state of 'last'"):
        states.replace_group("last", 1, [(str(number).encode(), b"y" * 1000) for number in range(1000)])
    assert states.group("last", 1) == [] and told(states, "count") == written
    states.close()


def test_a_group_in_several_slices_has_its_checksum_before_in_the_first_and_after_in_the_last() -> None:
    def change(*groups: int) -> Appended:
        runs = packed((group, 1) for group in groups)
        return Appended(f"count{STATE}", 0, Slice("file", 0, 0, 0, SchemaId("x"), 0, len(groups), runs))

    sums = {"count": {group: GroupSums(10 + group, 20 + group) for group in (1, 2, 3)}}
    tuples, changes = apart(Written([change(1, 2), change(2), change(2, 3)], []), sums)
    assert tuples == [] and [list(unpacked_sums(one.sums)) for one in changes] == [
        [(11, 21), (12, 0)],
        [(0, 0)],
        [(0, 22), (13, 23)],
    ]
