"""Runs every benchmark, or those named: ``python -m benchmarks chat store``."""

from __future__ import annotations

import importlib
import os
import pkgutil
import platform
import sys
import time

import benchmarks

_WIDTH = 60
_HELPERS = {
    "__main__",
    "a2a_peer",
    "bare_call",
    "bare_hub",
    "bare_line",
    "bare_steps",
    "daemon",
    "mcp_server",
    "side_by_side",
    "ruled_steps",
    "simulated_peers",
    "ssh_peers",
}


def main(wanted: list[str]) -> int:
    """Prints a section for each benchmark; the code is 1 when one broke."""
    names = [found.name for found in pkgutil.iter_modules(benchmarks.__path__) if found.name not in _HELPERS]
    unknown = set(wanted) - set(names)
    if unknown:
        print(f"No benchmark {', '.join(sorted(unknown))}. There are: {', '.join(names)}")
        return 2
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    broken = 0
    for name in names:
        if wanted and name not in wanted:
            continue
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name}: {(module.__doc__ or '').strip().splitlines()[0]}")
        missing = getattr(module, "missing", str)()
        if missing:
            print(f"  skipped, needs {missing}")
            continue
        began = time.perf_counter()
        try:
            for title, figure in module.run():  # of a long one, each as soon as it is there
                print(f"  {title:<{_WIDTH}}  {figure}", flush=True)
        except Exception as error:
            broken += 1
            print(f"  broken: {type(error).__name__}: {error}")
            continue
        print(f"  ({time.perf_counter() - began:.0f} s)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
