"""Tables and usual loads by a word: a file, or one that ships with the package."""

from importlib.resources import files
from pathlib import Path

from elastream.errors import SettingError


def read_text(what: str, word: str, command: str) -> str:
    """The text; an error says which command writes such a file."""
    path = Path(word)
    shipped = files(__package__).joinpath("tables", f"{word}.yaml")
    try:
        if not path.is_file() and shipped.is_file():
            return shipped.read_text(encoding="utf-8")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{what} {word}: cannot be read: {error}; write one with elastream {command}") from None
