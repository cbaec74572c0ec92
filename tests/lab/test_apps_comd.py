"""The analysis of a simulation of atoms: its physics, its film, and both analyses against a direct computation."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flows import finish, replay_of
from pyspark import cloudpickle
from stored import results_of

from elastream.cli.run import sink_summaries
from elastream.errors import SettingError
from elastream.testing import LocalEngine
from elastream.workload import constant
from elastream_lab.apps.comd import app as comd
from elastream_lab.apps.comd.app import GRID
from elastream_lab.apps.comd.molecular_dynamics import (
    CUTOFF,
    SPACING,
    STEP,
    TEMPERATURE,
    Snapshot,
    forces_between,
    lattice,
    near_pairs,
    shortest,
    simulate_atoms,
)
from elastream_lab.apps.comd.payload import PARTS, AtomPayload, atom_payload, make_film, part_bounds
from elastream_lab.apps.results.database import stored_rows

SMALL = (4, 4, 4)


@pytest.fixture(scope="module")
def steps() -> list[Snapshot]:
    return list(islice(simulate_atoms(SMALL), 400))


def total_energy(step: Snapshot) -> float:
    return step.potential + 0.5 * float((step.velocities**2).sum())


# -- physics


def test_a_lattice_has_four_atoms_per_cell_each_with_twelve_nearest_neighbours() -> None:
    cells = (4, 5, 6)
    positions, box = lattice(cells), np.array(cells) * SPACING
    assert positions.shape == (4 * 4 * 5 * 6, 3)
    apart = shortest(positions[:, None] - positions[None], box)
    distances = np.sqrt((apart**2).sum(axis=2))
    nearest = SPACING / np.sqrt(2)
    assert (np.isclose(distances, nearest).sum(axis=1) == 12).all()
    np.fill_diagonal(distances, np.inf)
    assert distances.min() == pytest.approx(nearest)


def test_pairs_and_forces_are_those_of_all_pairs_one_by_one() -> None:
    box = np.full(3, 4 * SPACING)
    positions = (lattice(SMALL) + np.random.default_rng(2).normal(0, 0.05, (256, 3))) % box
    forces, potential = forces_between(positions, near_pairs(positions, box), box)
    expected, energy = np.zeros_like(positions), 0.0
    for one in range(256):
        apart = shortest(positions[one] - positions[one + 1 :], box)
        r = np.sqrt((apart**2).sum(axis=1))
        near = r < CUTOFF
        energy += (4 * (r[near] ** -12 - r[near] ** -6) - 4 * (CUTOFF**-12 - CUTOFF**-6)).sum()
        pull = ((48 * r[near] ** -13 - 24 * r[near] ** -7) / r[near])[:, None] * apart[near]
        expected[one] += pull.sum(axis=0)
        expected[one + 1 :][near] -= pull
    assert np.abs(forces - expected).max() < 1e-9 * np.abs(expected).max()
    assert potential == pytest.approx(energy, rel=1e-12)


def test_energy_and_momentum_are_conserved_while_heat_becomes_potential(steps: list[Snapshot]) -> None:
    energies = np.array([total_energy(step) for step in steps]) / 256
    kinetic = np.array([0.5 * (step.velocities**2).sum() for step in steps]) / 256
    assert kinetic[0] == pytest.approx(1.5 * TEMPERATURE)
    assert kinetic.min() < 0.6 * kinetic[0]
    assert np.ptp(energies) < 2e-3 * np.ptp(kinetic)
    assert np.abs([step.velocities.sum(axis=0) for step in steps]).max() < 1e-9


def test_a_smaller_step_conserves_energy_better(monkeypatch: pytest.MonkeyPatch, steps: list[Snapshot]) -> None:
    def drift(snapshots: list[Snapshot]) -> float:
        return float(np.ptp([total_energy(step) for step in snapshots]))

    monkeypatch.setattr("elastream_lab.apps.comd.molecular_dynamics.STEP", 4 * STEP)
    # Verlet's error goes with the square of the step.
    assert drift(list(islice(simulate_atoms(SMALL), 50))) > 6 * drift(steps[:200])


def test_atoms_go_back_the_way_they_came_when_their_velocities_are_turned(steps: list[Snapshot]) -> None:
    box = np.full(3, 4 * SPACING)
    positions, velocities = steps[60].positions, -steps[60].velocities
    forces = forces_between(positions, near_pairs(positions, box), box)[0]
    for _ in range(60):
        velocities = velocities + 0.5 * STEP * forces
        positions = (positions + STEP * velocities) % box
        forces = forces_between(positions, near_pairs(positions, box), box)[0]
        velocities = velocities + 0.5 * STEP * forces
    assert np.abs(shortest(positions - steps[0].positions, box)).max() < 1e-9


# -- the source


def test_a_film_is_shown_forwards_and_backwards_and_a_tuple_depends_on_its_number_alone() -> None:
    payload = atom_payload(4)
    film = payload.film
    last = len(film.frames) - 1
    assert film.shown(np.array([0, 1, last, last + 1, 2 * last, 2 * last + 3])).tolist() == [0, 1, last, last - 1, 0, 3]
    whole = payload(np.arange(4 * PARTS))
    assert whole["iteration"].tolist() == np.repeat(range(4), PARTS).tolist()
    atoms = np.asarray(whole["positions"].slice(3 * PARTS, PARTS).flatten()).reshape(-1, 3)
    assert (atoms == film.frames[3]).all()
    assert payload(np.array([17]))["positions"].to_pylist() == whole["positions"].slice(17, 1).to_pylist()


def test_a_film_travels_ready_made() -> None:
    payload = atom_payload(4)
    sent = cloudpickle.loads(cloudpickle.dumps(payload))  # type: ignore[no-untyped-call]
    assert isinstance(sent, AtomPayload) and sent._film is not None
    assert (sent.film.frames == make_film(4).frames).all()


@pytest.mark.parametrize("cells", [3, 33, True, 4.0])
def test_a_lattice_that_cannot_be_simulated_is_refused(cells: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"lattice must be 4\.\.32 unit cells along each axis"):
        comd.topology(lattice=cells, database=str(tmp_path / "x.sqlite"))


# -- the flow


def test_both_analyses_are_those_of_a_direct_computation_while_replicas_change(tmp_path: Path) -> None:
    iterations = 250
    app = comd.topology(constant(iterations * PARTS, 1.0), lattice=5, database=str(tmp_path / "x.sqlite"))
    with LocalEngine().start(app, str(tmp_path / "base")) as handle:
        for size in (3, 1, 4, 2):
            for name in ("histogram", "travel", "gather", "store"):
                handle.scale(name, size)
            handle.await_end(0.3)
        finish(handle)
        assert handle.dead_letters().num_rows == 0 and handle.audit().problems == ()
        assert handle.state("travel").column("last_seen").to_pylist() == [iterations - 1] * PARTS
        assert handle.state("gather").num_rows == 0
    make: Any = replay_of(app.build()).make
    film = make.film
    seen = film.frames[film.shown(np.arange(iterations))].astype(np.float64)
    assert len(film.frames) == 200 < iterations
    rows = sorted(stored_rows(results_of(app.build())), key=lambda row: row[1])
    assert [row[1:3] for row in rows] == [(n, 500) for n in range(iterations)]
    edges = [np.linspace(0, edge, GRID + 1) for edge in film.box]
    for n, (_, _, _, histogram, mean_travel, farthest) in enumerate(rows):
        expected = np.histogramdd(seen[n], edges)[0].astype(int)
        assert histogram == " ".join(map(str, expected.reshape(-1)))
        apart = seen[n] - seen[max(0, n - 1)]
        apart -= np.array(film.box) * np.round(apart / film.box)
        distances = np.sqrt((apart**2).sum(axis=1))
        assert (mean_travel, farthest) == pytest.approx((distances.mean(), distances.max()), rel=1e-9, abs=1e-15)
    assert rows[1][4] == pytest.approx(STEP * np.sqrt(8 * TEMPERATURE / np.pi), rel=0.05)
    assert sink_summaries(app.build())[0].splitlines()[1].startswith("250 iterations of 500 atoms: ")


def test_the_atoms_of_an_iteration_are_in_one_part_each() -> None:
    assert part_bounds(500).tolist() == [0, 62, 125, 187, 250, 312, 375, 437, 500]
