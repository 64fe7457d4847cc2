"""Everything that is measured, as one table: `python -m bench`, or some of it: `python -m bench requests delivery`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from bench.figure import Figure

HEAD = ("what", "ours", "reference", "ratio")


def modules() -> list[str]:
    """The modules beside this one that measure something."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    return [name for name in names if "\ndef figures(" in (Path(__file__).parent / f"{name}.py").read_text()]


def measure(name: str) -> list[Figure]:
    """The figures of one module."""
    figures = cast("Callable[[], list[Figure]]", importlib.import_module(f"bench.{name}").figures)
    return figures()


def main(chosen: list[str]) -> int:
    """Print the table; 1 when something could not be measured, which is said below it."""
    rows: list[tuple[str, ...]] = [HEAD]
    failures: list[str] = []
    for name in chosen or modules():
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        try:
            rows += [tuple(cell.strip() for cell in figure.row().split("|")) for figure in measure(name)]
        except Exception as error:
            failures.append(f"{name} could not be measured: {type(error).__name__}: {error}")
    _print(rows)
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def _print(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        " | ".join(f"{cell:>{width}}" if column else f"{cell:<{width}}" for column, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    rule = "|".join("-" * (width + 1) + (":" if column else "-") for column, width in enumerate(widths))
    for line in (f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])):
        print(line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
