"""Run as a program of its own: resumes every image in a file, one JSON text a line, and says what came of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from agents.runtimes.lispy.machine import Machine


def main(images: Path, results: Path) -> None:
    with images.open() as lines, results.open("w") as out:
        for line in lines:
            machine = Machine.thaw(json.loads(json.loads(line)))
            outcome = machine.run()
            out.write(json.dumps([outcome.as_json(), machine.freeze_text()]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
