"""Java, without which there is no Spark: that it is there and new enough, said before Spark is started."""

import os
import re
import shutil
import subprocess

from elastream.errors import SettingError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

PATIENCE_S = 20.0

_FIX = f"install Java {OLDEST} or newer, or let JAVA_HOME name its directory"


def check_java() -> None:
    """Raise in one line when Spark would find no Java, or one that is too old."""
    home = os.environ.get("JAVA_HOME")
    path = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if path is None:
        raise SettingError(f"Java: there is no java on the PATH, and JAVA_HOME is not set; {_FIX}")
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        where = "JAVA_HOME" if home else "PATH"
        raise SettingError(f"Java: {path}, by {where}, cannot be run: {_line(str(error))}; {_FIX}") from None
    said = done.stderr + done.stdout
    version = version_of(said)
    if done.returncode or version is None:
        raise SettingError(f"Java: {path} -version failed: {_line(said) or f'exit code {done.returncode}'}; {_FIX}")
    if version < OLDEST:
        raise SettingError(f"Java: Spark needs {OLDEST} or newer, {path} is {version}; {_FIX}")


def version_of(said: str) -> int | None:
    """17 of `openjdk version "17.0.9" 2023-10-17`, and 8 of `java version "1.8.0_392"`."""
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
