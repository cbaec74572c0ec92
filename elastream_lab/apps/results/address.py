"""Where results are stored: what a user writes enters, a checked address that never shows its password leaves."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from elastream.errors import SettingError

_URL = re.compile(
    r"postgres(?:ql)?://"
    r"(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^:@/?#\s]*))?@)?"
    r"(?P<rest>[^@/?#\s]*(?:/[^@/?#\s]*)?)"
    r"(?:\?(?P<query>[^@?#\s]*))?"
)
_REDIS = re.compile(
    r"redis://(?:(?P<user>[^:@/?#\s]*):(?P<password>[^:@/?#\s]*)@)?(?P<host>[^:@/?#\s]+)(?P<rest>(?::\d{1,5})?(?:/\d{0,4})?)"
)


@dataclass(frozen=True)
class Address:
    shown: str
    """For messages."""
    target: str = field(repr=False)
    """To connect with: an absolute path, or a URL with its password."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_postgres(self) -> bool:
        return self.target.startswith("postgres")

    @property
    def is_redis(self) -> bool:
        return self.target.startswith("redis://")

    def hide(self, message: object) -> str:
        """What a database said, on one line and without the password."""
        text = " ".join(str(message).split())
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def parse_address(database: str) -> Address:
    """A path is made absolute here, for a worker may be in another directory."""
    if database.startswith(("postgres://", "postgresql://")):
        return _postgres(database)
    if database.startswith("redis://"):
        return _redis(database)
    if "://" in database or "password=" in database or database.strip() in ("", ":memory:"):
        # It may hold a password, so it is not shown.
        raise SettingError(
            "database: expected a file's path or postgresql://user:password@host:port/name; for counts also redis://host:port/0"
        )
    path = str(Path(database).absolute())
    return Address(path, path)


def _postgres(url: str) -> Address:
    found = _URL.fullmatch(url)
    if not found:
        raise SettingError(
            "database: expected postgresql://user:password@host:port/name; in a user or a password write "
            "each of : @ / ? # and space as % and two digits, @ as %40"
        )
    password, query = found["password"] or "", found["query"] or ""
    secrets = {password, unquote(password)}
    for pair in query.split("&"):
        if "password" in pair.partition("=")[0]:
            secrets |= {pair.partition("=")[2], *(value for _, value in parse_qsl(pair))}
    user = f"{found['user']}@" if found["user"] else ""
    # The longest first: one may be a part of another.
    known = tuple(sorted(secrets - {""}, key=len, reverse=True))
    return Address(f"postgresql://{user}{found['rest']}", url, known)


def _redis(url: str) -> Address:
    found = _REDIS.fullmatch(url)
    if not found:
        raise SettingError(
            "database: expected redis://user:password@host:port/number; user and password may be left out; write each of "
            ": @ / ? # and space in them as % and two digits, @ as %40"
        )
    password = found["password"] or ""
    known = tuple(sorted({password, unquote(password)} - {""}, key=len, reverse=True))
    user = f"{found['user']}@" if found["user"] else ""
    return Address(f"redis://{user}{found['host']}{found['rest']}", url, known)
