"""The control loop: monitor, analyze, plan, execute. Observations enter; decisions with reasons leave.

Read in that order. A policy proposes, guards dispose, the journal remembers. Knows no Spark: what it controls is a plant.
"""

from elastream.control.guards import Guards
from elastream.control.journal import Journal, JournalEntry, read_journal
from elastream.control.loop import ControlLoop, checked_td
from elastream.control.observation import Observation, OperatorObservation, ReplicaObservation
from elastream.control.plant import Plant
from elastream.control.proposal import Decision, Policy, Proposal, Restart, Want
from elastream.control.state_moved import StateMoved

__all__ = [
    "ControlLoop",
    "Decision",
    "Guards",
    "Journal",
    "JournalEntry",
    "Observation",
    "OperatorObservation",
    "Plant",
    "Policy",
    "Proposal",
    "ReplicaObservation",
    "Restart",
    "StateMoved",
    "Want",
    "checked_td",
    "read_journal",
]
