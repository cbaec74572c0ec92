"""A tick on Spark. A graph and a base directory enter; a handle to a stream that flows leaves."""

from elastream.engine.handle import Handle
from elastream.engine.serving import Delivery
from elastream.engine.session import TICK_SETTINGS, tick_session
from elastream.engine.settings import Settings
from elastream.engine.start import run

__all__ = ["TICK_SETTINGS", "Delivery", "Handle", "Settings", "run", "tick_session"]
