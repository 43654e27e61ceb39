"""Source text is read by many threads at once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from agents.contract.syntax import syntax_tree

SOURCE = "x = [[[[[[1]]]]]]\n" * 300


class LaysDown:
    """Garbage whose end, which may come while a tree is built, lets other threads go on."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0.0001)


def read(_: int) -> int:
    for _ in range(20):
        LaysDown()
    return len(syntax_tree(SOURCE).body)


def test_threads_that_read_at_once_all_get_their_tree() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, range(60))) == {300}
