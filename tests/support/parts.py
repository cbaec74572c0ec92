"""Real parts that tests need and that may not be there: a browser, a database, a broker."""

import os
from typing import NoReturn

import pytest

MUST_RUN = "ELASTREAM_MUST_RUN"
"""Where this is set, a part that is not there is a failure and no reason to skip."""


def skip_or_fail(reason: str) -> NoReturn:
    if os.environ.get(MUST_RUN):
        pytest.fail(reason)
    pytest.skip(reason)
