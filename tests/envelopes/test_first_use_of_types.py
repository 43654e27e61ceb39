"""Types of messages, read for the first time by several threads at once."""

from __future__ import annotations

import subprocess
import sys

ROUNDS = """
import sys, threading, msgspec

sys.setswitchinterval(1e-6)
TEXT = b'{"rows": [{"number": 1}], "named": {"one": {"text": "a"}}}'


def read(kind, ready):
    ready.wait()
    msgspec.json.decode(TEXT, type=kind)


for _ in range(200):
    class Row(msgspec.Struct):
        number: "int" = 0
        text: "str" = ""

    class Answer(msgspec.Struct):
        rows: "list[Row]" = []
        named: "dict[str, Row]" = {}

    ready = threading.Barrier(4)
    threads = [threading.Thread(target=read, args=(Answer, ready)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_read_a_new_type_at_once_end_no_process() -> None:
    """With msgspec 0.22 a daemon ended so: a phone asked for the workflows while one was started."""
    ran = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
