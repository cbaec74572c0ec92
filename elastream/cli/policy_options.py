"""The options of the control loop that `elastream run` and `elastream simulate` share."""

import argparse

from elastream.cli.guard_options import add_guard_options
from elastream.errors import SettingError
from elastream.policies import with_targets

DEFAULT = "elastic"
BY_HAND = "none"
POLICY_WORD = "NAME|FILE.py:CLASS|MODULE:CLASS[:KEY=N,...]"
"""How a policy is written on the command line."""


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--latency-ms",
        type=float,
        metavar="MS",
        help="the latency that the policy shall keep, if it takes such a target; default: the policy's",
    )
    parser.add_argument(
        "--per-second",
        type=float,
        metavar="N",
        help="the input rate it shall be ready for, if it takes such a target; default: what comes",
    )
    parser.add_argument(
        "--models",
        metavar="DIR",
        help="where policies that learn keep models for other runs, see elastream models; default: in the base only",
    )
    parser.add_argument(
        "--td", type=float, metavar="S", help="the policy decides this often; default: at its own pace, else every 5 s"
    )
    add_guard_options(parser)


def chosen_policy(args: argparse.Namespace) -> str | None:
    """The policy as a word, with its targets; checked. None: replicas are set by hand, with `--replicas` or not at all."""
    word: str = args.policy or (BY_HAND if args.replicas else DEFAULT)
    if word != BY_HAND:
        return with_targets(word, latency_ms=args.latency_ms, per_second=args.per_second)
    for option in ("guards", "slots", "cooldown", "largest_step", "dry_run", "models", "latency_ms", "per_second"):
        if getattr(args, option):
            raise SettingError(f"--{option.replace('_', '-')} needs a policy; name one with --policy")
    return None
