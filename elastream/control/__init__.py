"""The control loop: monitor, analyze, plan, execute. Observations enter; decisions with reasons leave.

Read in that order. A policy proposes, guards dispose, the journal remembers. Knows no Spark: what it controls is a plant.
"""

from elastream.control.guards import Guards
from elastream.control.interval import DEFAULT_TD_S, checked_td, interval_of
from elastream.control.journal import Journal, JournalEntry, read_journal, read_run
from elastream.control.load import Load, load_of
from elastream.control.look import Look
from elastream.control.loop import ControlLoop
from elastream.control.observation import HostObservation, Observation, OperatorObservation, ReplicaObservation
from elastream.control.plant import Plant
from elastream.control.policy import Policy
from elastream.control.proposal import (
    Decision,
    Home,
    LevelDecision,
    LevelWant,
    Move,
    Proposal,
    Want,
)
from elastream.control.redirected import Redirected
from elastream.control.search_step import SearchStep
from elastream.control.state_moved import StateMoved

__all__ = [
    "DEFAULT_TD_S",
    "ControlLoop",
    "Decision",
    "Guards",
    "Home",
    "HostObservation",
    "Journal",
    "JournalEntry",
    "LevelDecision",
    "LevelWant",
    "Load",
    "Look",
    "Move",
    "Observation",
    "OperatorObservation",
    "Plant",
    "Policy",
    "Proposal",
    "Redirected",
    "ReplicaObservation",
    "SearchStep",
    "StateMoved",
    "Want",
    "checked_td",
    "interval_of",
    "load_of",
    "read_journal",
    "read_run",
]
