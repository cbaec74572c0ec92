"""Masters are known by their address, and one that does not answer is said at once."""

import socket

import pytest

from elastream.engine.spark.masters import check_master, is_local, is_on_loopback
from elastream.errors import SettingError


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4,4]"])
def test_local_masters_need_nothing_shared(master: str) -> None:
    assert is_local(master)
    assert not is_on_loopback(master)


@pytest.mark.parametrize(
    "master", ["spark://10.0.0.5:7077", "yarn", "k8s://https://10.0.0.5:443", "local-cluster[2,1,512]"]
)
def test_clusters_are_not_local(master: str) -> None:
    assert not is_local(master)
    assert not is_on_loopback(master)


def test_a_master_that_only_this_machine_reaches_is_known() -> None:
    assert is_on_loopback("spark://127.0.0.1:7077")
    assert is_on_loopback("spark://localhost:7077,[::1]:7078")
    assert not is_on_loopback("spark://localhost:7077,10.0.0.5:7077")


def test_one_of_several_masters_must_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answers, silent = f"127.0.0.1:{listening.getsockname()[1]}", f"127.0.0.1:{free.getsockname()[1]}"
        check_master(f"spark://{silent},{answers}")
        with pytest.raises(SettingError, match=rf"master spark://{silent}: nobody answers there; start the master"):
            check_master(f"spark://{silent}")


def test_an_address_without_a_port_is_refused_with_an_example() -> None:
    with pytest.raises(SettingError, match=r"master spark://here: expected spark://HOST:PORT, for example"):
        check_master("spark://here")
