"""Secrets of sources and sinks: no name and no error tells them."""

from elastream import Topology, sinks, sources
from elastream.connectors.query.query import redacted

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


def test_an_error_of_spark_is_shown_without_the_secrets_of_sources() -> None:
    flow = Topology("x").source("in", sources.kafka("h:1", "t", options=SECRETS)).output("out").topology
    assert redacted(flow.build(), "no login with hun ter2") == "no login with ***"
