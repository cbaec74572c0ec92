"""Journals of version 1, which Elastream wrote until 0.2, in the form of today."""

from typing import Any


def from_version_1(entry: dict[str, Any]) -> dict[str, Any]:
    """Operators were a list, latencies of a look were pairs, and a proposal said whether the policy's system restarts."""
    observation, proposal = entry["observation"], entry["proposal"]
    restarts = proposal is not None and proposal.get("restart", "no") not in ("no", False)
    operators = {operator["operator"]: operator for operator in observation["operators"]}
    looks = [[*look[:-1], {str(bucket): count for bucket, count in look[-1]}] for look in entry.get("looks", ())]
    return {"paused": restarts, **entry, "observation": {**observation, "operators": operators}, "looks": looks}
