"""The reference page of all settings, made from their declarations.

python -m elastream.settings_page docs/reference/settings.md
"""

import sys
from pathlib import Path

from elastream.setting_fields import Option, options_of
from elastream.settings import GROUPS

_HEAD = """# Settings

`Settings` has four groups. A setting that the code does not give comes from its environment variable, else it is the default; the word
`none` in a variable means None. Flags are options of `elastream run`; those of `queues` are options of `simulate` and `bench`, too. An unknown
name is refused.

```python
from elastream import ErrorSettings, QueueSettings, Settings, start

settings = Settings(queues=QueueSettings(q_size=1000), errors=ErrorSettings(on_error="stop"))
start(app, "pages-base", settings=settings)
```

This page is made by `python -m elastream.settings_page docs/reference/settings.md`; a test compares it with the declarations.
"""


def settings_page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for group in GROUPS:
        text = (group.__doc__ or "").partition(":")[0]
        rows = ["| setting | default | values | flag | variable | |", "| --- | --- | --- | --- | --- | --- |"]
        rows += [_row(option) for option in options_of(group)]
        parts.append("\n".join([f"## {group.group}: `{group.__name__}`", "", f"{text}.", "", *rows, ""]))
    return "\n".join(parts)


def _row(option: Option) -> str:
    values = f"{option.expected}{', or None' if option.optional else ''}"
    flag = f"`{option.flag}`" if option.flag else ""
    cells = [f"`{option.name}`", f"`{option.default!r}`", values, flag, f"`{option.variable}`", option.text]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(settings_page(), encoding="utf-8")
