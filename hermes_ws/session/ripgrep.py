"""Searching with ripgrep: it is asked for the same files and lines that the warden's own search finds, only faster."""

from __future__ import annotations

from pathlib import Path

from hermes_ws.warden import tree
from hermes_ws.warden.grants import Finished, Found, Looking, Match

_OPTIONS = (
    *("--no-config", "--no-ignore", "--hidden", "--no-messages", "--null", "--line-number", "--no-heading"),
    *("--with-filename", "--color", "never", "--sort", "path", "--max-columns", str(tree.LINE_CHARACTERS)),
    *("--max-columns-preview", "--max-filesize", str(tree.FILE_BYTES)),
)


def words(program: str, place: Path, what: Looking) -> tuple[str, ...]:
    """The command that finds it."""
    said = [program, *_OPTIONS]
    for name in sorted(tree.SKIPPED):
        said += ["--glob", f"!{name}/"]
    if what.pattern is not None:
        said += ["--glob", what.pattern]
    if what.literal:
        said.append("--fixed-strings")
    if what.ignore_case:
        said.append("--ignore-case")
    return (*said, "--regexp", what.expression, "--", str(place))


def read(finished: Finished, place: Path, what: Looking) -> Found:
    """What it printed; a line that fits nothing is passed over."""
    matches: list[Match] = []
    base = f"{place}/"
    for line in finished.output.split(b"\n"):
        name, zero, rest = line.partition(b"\0")
        number, _, text = rest.partition(b":")
        if zero and number.isdigit() and len(number) <= 20:
            path = name.decode("utf-8", "replace")
            shown = path.removeprefix(base) if path.startswith(base) else path.rsplit("/", 1)[-1]
            matches.append(Match(shown, int(number), text.decode("utf-8", "replace").rstrip("\r")))
    more = len(matches) > what.limit or finished.truncated or finished.timed_out
    return Found(tuple(matches[: what.limit]), more)
