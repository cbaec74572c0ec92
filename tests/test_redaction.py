"""Secrets of sources and sinks: no name and no error tells them."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from elastream import Handle, Settings, Topology, sinks, sources
from elastream.engine.driver import Driver
from elastream.engine.tick_source import Mailbox
from elastream.errors import RunFailed
from elastream.lanes import Store

LOGIN = 'org.example.Plain required\n  username="me" password="hun ter2";'
SECRETS = {"kafka.sasl.jaas.config": LOGIN, "kafka.ssl.keystore.key": "k3y"}


def test_secrets_in_options_are_not_shown() -> None:
    source, sink = sources.kafka("h:1", "t", options=SECRETS), sinks.kafka("h:1", "t", options=SECRETS)
    files = sources.json("s3a://b", "id long", options={"fs.s3a.secret.key": "hun ter2", "fs.s3a.access.key": "k3y"})
    for spec in (source, sink, files):
        assert "hun ter2" not in repr(spec)
        said = spec.redact("me: no 'hun ter2' and no k3y, but token=f00, Password=\"f00\" in partition=7")
        assert said == "me: no '***' and no ***, but token=***, Password=*** in partition=7"
    table = sinks.jdbc("jdbc:postgresql://h/d", "t", options={"user": "me", "password": "hunter2"})
    assert table.redact("the message for me: xhunter2x") == "the message for ***: x***x"
    assert source.redact(LOGIN.splitlines()[1]).strip() == "***"


def test_a_run_that_fails_does_not_tell_the_secrets_of_its_sources(tmp_path: Path) -> None:
    flow = Topology("x").source("in", sources.kafka("h:1", "t", options=SECRETS)).output("out", after="in")
    folder, ended = str(tmp_path), Mock(isActive=False)
    driver = Driver(flow.build(), Settings(), Store(folder), Mailbox(folder), capacity=Mock(), td_s=1.0)
    driver.error = RuntimeError("no login with hun ter2")
    handle = Handle(flow.build(), folder, driver, ended, Mock(), folder, Mock(), folder)
    with pytest.raises(RunFailed, match=r"^tick 0 failed, nothing of it was applied: no login with \*\*\*$"):
        handle.stop()
