"""QR codes as text of half blocks, black on white whatever the terminal's colours, and as SVG."""

from __future__ import annotations

_QUIET = 2
_HALVES = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
_BLACK_ON_WHITE, _PLAIN = "\x1b[30;107m", "\x1b[0m"


def matrix(text: str) -> list[list[bool]]:
    """The modules of the code with its quiet zone; True is dark. Raises ``ImportError`` without ``qrcode``."""
    import qrcode

    made = qrcode.QRCode(border=_QUIET, error_correction=qrcode.constants.ERROR_CORRECT_M)
    made.add_data(text)
    made.make()
    found: list[list[bool]] = made.get_matrix()
    return found


def as_text(text: str) -> list[str]:
    """The code's lines for a terminal, two rows of modules in each."""
    rows = matrix(text)
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    lines = []
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        halves = "".join(_HALVES[pair] for pair in zip(upper, lower, strict=True))
        lines.append(f"{_BLACK_ON_WHITE}{halves}{_PLAIN}")
    return lines


def as_svg(text: str) -> str:
    """The code as an SVG picture of one path."""
    rows = matrix(text)
    size = len(rows)
    squares = "".join(f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, dark in enumerate(row) if dark)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" shape-rendering="crispEdges">'
        f'<rect width="{size}" height="{size}" fill="#fff"/><path d="{squares}" fill="#000"/></svg>'
    )
