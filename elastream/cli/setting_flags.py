"""Flags of settings: those that are declared with one, for the commands that take them."""

import argparse
from typing import Any

from elastream.setting_fields import options_of
from elastream.settings import GROUPS, Settings


def add_setting_flags(parser: argparse.ArgumentParser, *groups: str) -> None:
    """Add the flags of these groups. A flag that is not given leaves its value to the environment, else to the default."""
    for group in GROUPS:
        for option in options_of(group) if group.group in groups else ():
            if option.flag is not None:
                text = f"{option.text[0].lower()}{option.text[1:].rstrip('.')}; default: {option.default}"
                if option.choices:
                    parser.add_argument(option.flag, dest=option.name, choices=option.choices, help=text)
                else:
                    parser.add_argument(
                        option.flag, dest=option.name, type=option.kind, metavar=option.metavar, help=text
                    )


def given_settings(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Per group, the settings that flags give."""
    given: dict[str, dict[str, Any]] = {}
    for group in GROUPS:
        for option in options_of(group):
            value = getattr(args, option.name, None) if option.flag is not None else None
            if value is not None:
                given.setdefault(group.group, {})[option.name] = value
    return given


def settings_of(args: argparse.Namespace, **more: dict[str, Any]) -> Settings:
    """The settings that flags give. `more`: values of groups that a command sets by itself."""
    given = given_settings(args)
    groups: dict[str, Any] = {
        group.group: group(**given.get(group.group, {}) | more.get(group.group, {})) for group in GROUPS
    }
    return Settings(**groups)
