"""The decorator of compiled functions. What was compiled is kept between runs, and thrown away when any source changes."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

from elastream import rules
from elastream.report import latency

Function = TypeVar("Function", bound=Callable[..., Any])


def _cache() -> Path:
    """One directory for each state of the sources: by itself, numba does not see that a function which another calls
    has changed in another file."""
    digest = sha256()
    for source in (Path(rules.__file__), Path(latency.__file__), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(source.read_bytes())
    home = os.environ.get("ELASTREAM_CACHE") or Path.home() / ".cache" / "elastream"
    return Path(home) / "compiled" / digest.hexdigest()[:16]


vars(config)["CACHE_DIR"] = str(_cache())


def compiled(function: Function) -> Function:
    made: Any = njit(cache=True)(function)
    return cast(Function, made)
