"""JSON documents with a kind, a version and a checksum, so that damage is seen before it is believed."""

import json
import zlib
from typing import Any

from elastream.errors import Damaged

VERSION = 1


def seal(kind: str, document: dict[str, Any]) -> bytes:
    """One line that says what follows, one line that is it."""
    return seal_body(kind, json.dumps(document, separators=(",", ":")).encode())


def seal_body(kind: str, body: bytes, version: int = VERSION) -> bytes:
    """The same for a document that is JSON already."""
    header = {"format": f"elastream-{kind}", "version": version, "bytes": len(body), "crc32": zlib.crc32(body)}
    return json.dumps(header).encode() + b"\n" + body + b"\n"


def unseal(kind: str, data: bytes, where: str) -> dict[str, Any]:
    """The document, or `Damaged` with the file's name and what to do."""
    return unseal_version(kind, data, where, (VERSION,))[1]


def unseal_version(kind: str, data: bytes, where: str, versions: tuple[int, ...]) -> tuple[int, dict[str, Any]]:
    """The same for a kind that is read in several versions: which one it is, and the document."""
    header_line, _, rest = data.partition(b"\n")
    try:
        header = json.loads(header_line)
        found, version, size, checksum = header["format"], header["version"], header["bytes"], header["crc32"]
        if not isinstance(size, int):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Damaged(
            f"{where}: no header of an elastream-{kind}; restore the file from a copy and start again"
        ) from None
    if found != f"elastream-{kind}":
        raise Damaged(f"{where}: expected an elastream-{kind}, got {found!r}; restore the file and start again")
    if version not in versions:
        known = " and ".join(map(str, versions))
        raise Damaged(f"{where}: version {version}, this Elastream reads {known}; use the version that wrote it")
    body = rest[:size]
    if len(body) != size or zlib.crc32(body) != checksum:
        raise Damaged(
            f"{where}: checksum {checksum} of {size} bytes expected, got {zlib.crc32(body)} of {len(body)}; "
            "restore the file from a copy and start again: nothing after it was applied"
        )
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise unexpected(kind, where)
    return version, document


def unexpected(kind: str, where: str) -> Damaged:
    """Whole, and yet not what it should be: written by something else, or by hand."""
    return Damaged(f"{where}: is not what an elastream-{kind} should be; restore the file from a copy and start again")
