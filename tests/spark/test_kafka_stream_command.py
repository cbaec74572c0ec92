"""`elastream kafka` with a real broker: clicks flow, and Ctrl-C ends it in order."""

import signal
import subprocess
import sys
import time

from kafka_broker import need_kafka

from elastream.testing.ports import free_ports


def test_clicks_are_written_until_ctrl_c_and_no_process_stays() -> None:
    need_kafka()
    (port,) = free_ports(1)
    words = [sys.executable, "-m", "elastream.cli.main", "kafka", "--port", str(port), "--per-second", "200"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if f"topic clicks on 127.0.0.1:{port}: 200 clicks per second" in line:
                break
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait(30) == 0, said
    assert "Traceback" not in said
    last = said.splitlines()[-1]
    assert last.endswith("clicks were written; the broker has ended, and nothing of it stays")
    assert int(last.split()[0].replace(",", "")) > 0
