"""YAML that a user wrote: plain values, or an error in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from elastream.errors import SettingError


def parse_yaml(text: str, where: str) -> Any:
    """The document in a text; `where` begins the error."""
    with yaml_errors(where):
        return yaml.safe_load(text)


@contextmanager
def yaml_errors(where: str) -> Iterator[None]:
    """Turn every error of the YAML library into a `SettingError`."""
    try:
        yield
    except yaml.YAMLError as error:
        raise SettingError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise SettingError(
            f"{where}: lists and keys are nested too deeply, about 100 levels are read; flatten it"
        ) from None
    except (ValueError, OverflowError) as error:
        # Such as 2026-13-01, which looks like a date.
        raise SettingError(f"{where}: a value cannot be read: {error}; put it in quotes, or mend it") from None
