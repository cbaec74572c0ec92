"""Errors without secrets: what Java says and the options of a source or sink enter, what may be shown leaves."""

import re
from collections.abc import Mapping
from typing import Any

_SECRET = re.compile(r"password|passphrase|secret|token|jaas|credential|private|\buser\b|key$", re.IGNORECASE)

_PAIR = re.compile(r"""([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s&;,"']+))""")
"""As in a login of Kafka's, or in an address: user=me, password="..."."""

SHORT = 6


def redacted(text: str, options: Mapping[str, Any]) -> str:
    """Without the values of options that look secret, nor any line or password="..." of them, and no password=... at all."""
    secrets = set()
    for name, value in options.items():
        if _SECRET.search(name):
            secrets |= {str(value), *str(value).splitlines()}
        secrets |= {secret for key, *parts in _PAIR.findall(str(value)) if _SECRET.search(key) for secret in parts}
    for secret in sorted(filter(None, map(str.strip, secrets)), key=len, reverse=True):
        # A short one, such as a user's name, may be a part of any word.
        before, after = (r"(?<!\w)", r"(?!\w)") if len(secret) < SHORT else ("", "")
        text = re.sub(f"{before}{re.escape(secret)}{after}", "***", text)
    return _PAIR.sub(lambda pair: f"{pair[1]}=***" if _SECRET.search(pair[1]) else pair[0], text)
