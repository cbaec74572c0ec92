"""A real browser for the pages: Debian's chromium without a window, moved by its own driver."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from debian import found_or_installed
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service


class NoBrowser(Exception):
    """Why there is none, in one line."""


class Browser:
    """Opens pages from files and tells what they did."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1280, height: int = 900, phone: bool = False, **media: str) -> None:
        """`media` are features like prefers_color_scheme="dark"; `type` is screen or print."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self._do("Emulation.setDeviceMetricsOverride", size)
        self._do("Emulation.setTouchEmulationEnabled", {"enabled": phone})
        kind = media.pop("type", "")
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self._do("Emulation.setEmulatedMedia", {"media": kind, "features": features})
        self.driver.get(page.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def tap(self, x: float, y: float) -> None:
        self._do("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        self._do("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def errors(self) -> list[str]:
        """All that stood on the console since the last call."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """All addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def _log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log(kind)  # type: ignore[no-untyped-call]
        return entries

    def _do(self, command: str, arguments: dict[str, Any]) -> None:
        self.driver.execute_cdp_cmd(command, arguments)


@contextmanager
def browser() -> Iterator[Browser]:
    """A running one. Raises `NoBrowser`."""
    program, driver = _programs()
    options = ChromeOptions()
    options.binary_location = program
    for word in (
        "--headless=new",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--force-color-profile=srgb",
    ):
        options.add_argument(word)
    if os.geteuid() == 0:
        # Chromium's sandbox does not work for root.
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = Chrome(options=options, service=Service(driver))
    try:
        yield Browser(running)
    finally:
        running.quit()


def _programs() -> tuple[str, str]:
    found = found_or_installed(_find, "chromium", "chromium-driver")
    if found is None:
        raise NoBrowser("no chromium here, and it could not be installed; apt-get install chromium chromium-driver")
    return found


def _find() -> tuple[str, str] | None:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    return (program, driver) if program and driver else None
