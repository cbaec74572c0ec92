"""Whoever works in the directory that a clone is in has a directory named elastream there, which is not the package."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_package_is_found_beside_a_clone(tmp_path: Path) -> None:
    """Installed as `tools/venv` does; by an import hook, which is setuptools' default, the directory would hide it."""
    found = re.search(r"--config-settings (\S+) -e \.$", (ROOT / "tools" / "venv").read_text(), re.MULTILINE)
    assert found is not None
    clone = tmp_path / "elastream"
    (clone / "elastream").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", clone)
    shutil.copy(ROOT / "README.md", clone)
    (clone / "elastream" / "__init__.py").write_text("HERE = 'the package'\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    borrowed = Path(packages) / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib"))
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    install = [python, "-m", "pip", "install", *options, "--config-settings", found.group(1), "-e", "."]
    subprocess.run(install, cwd=clone, check=True, capture_output=True)
    borrowed.unlink()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = [str(python), "-c", "import elastream; print(elastream.HERE)"]
    said = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert said.stdout == "the package\n", said.stderr
