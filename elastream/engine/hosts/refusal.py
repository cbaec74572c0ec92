"""Errors of the user's program that every host meets: found in what a host left, they end the run at once."""

import re

_REFUSAL = re.compile(r"elastream\.errors\.SettingError: (.+)")


def refusal_in(text: str) -> str:
    """What a host said about a program that it cannot run, in one line; empty when it said nothing of that kind."""
    found = _REFUSAL.findall(text)
    return found[-1].strip() if found else ""
