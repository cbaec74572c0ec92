"""Settings: in groups, checked, from the environment, as flags, and on a page that is never stale."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elastream import ErrorSettings, QueueSettings, Settings, StateSettings, WorkSettings
from elastream.cli.setting_flags import add_setting_flags, settings_of
from elastream.errors import SettingError
from elastream.settings import all_options
from elastream.settings_page import settings_page


def test_every_setting_has_a_default_and_a_text() -> None:
    options = all_options()
    assert len(options) == len({option.variable for option in options}) == 13
    assert all(len(option.text.split()) >= 4 for option in options)
    assert Settings() == Settings(QueueSettings(), ErrorSettings(), StateSettings(), WorkSettings())
    assert Settings().works.budget_s == 0.05 and Settings().queues.q_size is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: QueueSettings(q_size=0), "q_size must be a whole number, 1 or more, got 0; None means no limit"),
        (lambda: QueueSettings(q_size=1.5), "q_size must be a whole number, 1 or more, got 1.5"),  # type: ignore[arg-type]
        (lambda: QueueSettings(q_size=True), "q_size must be a whole number, 1 or more, got True"),
        (lambda: QueueSettings(q_size="5"), "q_size must be a whole number, 1 or more, got '5'"),  # type: ignore[arg-type]
        (lambda: QueueSettings(on_full="flee"), "on_full must be 'wait' or 'drop', got 'flee'"),  # type: ignore[arg-type]
        (lambda: QueueSettings(t_out_s=0), "t_out_s must be a number, more than 0, got 0; None means no limit"),
        (lambda: QueueSettings(t_out_s=float("nan")), "t_out_s must be a number, more than 0, got nan"),
        (lambda: StateSettings(ring_s=0), "ring_s must be a number, more than 0, got 0; None means no copies"),
        (lambda: StateSettings(partitions=0), "partitions must be a whole number, 1 or more, got 0"),
        (lambda: WorkSettings(budget_s=None), "budget_s must be a number, more than 0, got None"),  # type: ignore[arg-type]
        (lambda: WorkSettings(budget_s=2.0), "max_budget_s must be at least budget_s 2.0, got 1.0"),
        (
            lambda: Settings(queues={"q_size": 5}),  # type: ignore[arg-type]
            "settings: queues must be a QueueSettings, got dict {'q_size': 5}; write queues=QueueSettings(...)",
        ),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(make: Any, said: str) -> None:
    with pytest.raises(SettingError) as error:
        make()
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


def test_values_that_are_not_given_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, word in {
        "QUEUES_Q_SIZE": "1000",
        "QUEUES_ON_FULL": "drop",
        "ERRORS_LETTERS_DAYS": "none",
        "WORKS_TIMEOUT_S": "2.5",
    }.items():
        monkeypatch.setenv(f"ELASTREAM_{name}", word)
    assert Settings().queues == QueueSettings(q_size=1000, on_full="drop", t_out_s=None)
    assert Settings().errors.letters_days is None and Settings().works.timeout_s == 2.5
    given = Settings(queues=QueueSettings(q_size=5))
    assert (given.queues.q_size, given.queues.on_full) == (5, "drop")
    assert replace(given.queues, on_full="wait") == QueueSettings(q_size=5, on_full="wait")


@pytest.mark.parametrize(
    ("name", "word", "said"),
    [
        ("ELASTREAM_QUEUES_Q_SIZE", "many", "expected a whole number, 1 or more or none, got 'many'"),
        ("ELASTREAM_QUEUES_ON_FULL", "flee", "expected 'wait' or 'drop', got 'flee'"),
        ("ELASTREAM_QUEUES_QSIZE", "5", "no setting of this name; did you mean ELASTREAM_QUEUES_Q_SIZE?"),
        ("ELASTREAM_QUEUE_Q_SIZE", "5", "no setting of this name; did you mean ELASTREAM_QUEUES_Q_SIZE?"),
        ("ELASTREAM_STATE_COLOUR", "red", "no setting of this name; there are ELASTREAM_QUEUES_Q_SIZE"),
    ],
)
def test_a_wrong_variable_is_refused_in_one_line(
    name: str, word: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, word)
    with pytest.raises(SettingError) as error:
        Settings()
    assert str(error.value).startswith(f"{name}: {said}") and "\n" not in str(error.value)


def test_variables_that_are_no_settings_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTREAM_CACHE", "/tmp/cache")
    monkeypatch.setenv("ELASTREAM_TRACES", "/tmp/traces")
    assert Settings() == Settings()


def test_flags_come_from_the_declarations_and_go_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELASTREAM_QUEUES_Q_SIZE", "7")
    monkeypatch.setenv("ELASTREAM_QUEUES_T_OUT_S", "3")
    parser = argparse.ArgumentParser()
    add_setting_flags(parser, "queues", "errors")
    settings = settings_of(parser.parse_args(["--q-size", "9", "--on-error", "stop"]))
    assert (settings.queues.q_size, settings.queues.t_out_s, settings.errors.on_error) == (9, 3.0, "stop")
    own = settings_of(parser.parse_args([]), errors={"stop_after_failures": None})
    assert own.errors.stop_after_failures is None and own.queues.q_size == 7
    with pytest.raises(SystemExit):
        parser.parse_args(["--on-full", "flee"])
    parser.print_help()
    said = capsys.readouterr().out
    flags = [option.flag for option in all_options() if option.flag]
    assert flags == ["--q-size", "--on-full", "--t-out", "--on-error"] and all(flag in said for flag in flags)
    assert "the most tuples that may wait in one lane" in said


def test_the_reference_page_is_what_the_declarations_say() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert page == settings_page(), "make it anew: python -m elastream.settings_page docs/reference/settings.md"
    assert all(f"`{option.variable}`" in page for option in all_options())
