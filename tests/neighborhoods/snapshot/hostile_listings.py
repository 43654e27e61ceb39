"""Output of a hostile member machine in place of its list of twins, printed by the command of its sshd."""

from __future__ import annotations

from pathlib import Path

from fixtures.ssh_server import SshServer

PROGRAM = """#!{python}
import sys
script = b""
while b"M=" not in script or b"\\n" not in script.partition(b"M=")[2]:
    script += sys.stdin.buffer.raw.read(4096)
M = script.partition(b"M=")[2].partition(b"\\n")[0].strip(b"'")
out, err = sys.stdout.buffer, sys.stderr.buffer
def say(*words, to=out):
    to.write(b"\\n" + M + b" " + b" ".join(words) + b"\\n")
if b"out version" in script:
    say(b"begin"); say(b"free", "/dev/x 1 2 {free} 4% /".encode()); say(b"end")
    out.flush()
    sys.exit()
say(b"begin"); say(b"host pi"); say(b"kind gnu")
{prints}
say(b"end")
out.flush()
"""

_RAPPID = 'say(b"twin active " + b"a" * 64)\n'
ONE_LETTER_LINES = _RAPPID + 'out.write(b"a\\n" * 1_500_000); say(b"files"); say(b"done")'
LONG_SIZE = _RAPPID + 'out.write(b"{}"); say(b"files"); out.write(b"9" * 5000 + b" 1 1 ./x\\n"); say(b"done")'
MANY_FILES = (
    _RAPPID + 'out.write(b"{}"); say(b"files")\n'
    'out.write(b"".join(b"%d 1.0 1.0 ./f%d\\n" % (n, n) for n in range(400_000))); say(b"done")'
)
DEEP_RAPPID = _RAPPID + 'out.write(b"[" * 60_000); say(b"files"); say(b"done")'
EMPTY_LISTS = _RAPPID + 'out.write(b"[" + b"[]," * 20_000 + b"[]]"); say(b"files"); say(b"done")'
MANY_TWINS = (
    "for n in range(9_999):\n"
    '    say(b"twin active %064x" % n); out.write(b\'{"name": "x"}\'); say(b"files")\n'
    '    out.write(b"999999999999 1.0 1.0 ./x\\n"); say(b"done")'
)
NO_LINE_END = 'out.write(b"a" * 20_000_000)'
ENDLESS_ERRORS = 'say(b"fail \\xff\\xfe", to=err)\nwhile True: err.write(b"a" * 100_000)'
MARKED_WORDS = 'for n in range(300_000): say(b"word%d" % n, b"x" * 20)'


def print_instead(server: SshServer, prints: str, *, free: str = "3") -> None:
    """Makes the machine print what ``prints`` (Python) says whenever a script is sent to it."""
    import sys

    program = server.folder / "hostile"
    program.write_text(PROGRAM.format(python=sys.executable, prints=prints, free=free))
    program.chmod(0o755)


def options(folder: Path) -> list[str]:
    """The options of an ``SshServer`` whose commands are all that program."""
    return [f"ForceCommand={folder / 'hostile'}"]
