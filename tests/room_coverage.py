"""How much of each room its tests go through, and how much they must: `make coverage`.

Branches are counted. What a room's own tests prove alone is measured with these alone; a room that is reached by
others is measured with those. A figure here only ever rises.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Room:
    """The tests that are run, and the least that they must go through, in percent of lines and branches."""

    tests: tuple[str, ...]
    least: int


ROOMS: Mapping[str, Room] = MappingProxyType(
    {
        "contract": Room(("tests/contract",), 100),
        "wire": Room(("tests/wire",), 100),
        "scope": Room(("tests/scope",), 100),
        "journal": Room(("tests/journal",), 100),
        "session": Room(("tests/session",), 85),
    }
)


def main(names: list[str]) -> int:
    """Measure the rooms that are named, or all; how many are below their figure."""
    below = 0
    for name in names or ROOMS:
        room = ROOMS[name]
        with tempfile.TemporaryDirectory() as place:
            config = Path(place) / "coverage.toml"
            config.write_text(
                f'[tool.coverage.run]\nbranch = true\nsource = ["hermes_ws/{name}"]\ndata_file = "{place}/data"\n'
                '[tool.coverage.report]\nexclude_also = ["if TYPE_CHECKING:", "\\\\.\\\\.\\\\.$", "assert_never"]\n'
            )
            run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *room.tests]
            shown = [f"--cov=hermes_ws/{name}", f"--cov-config={config}", "--cov-report=term-missing:skip-covered"]
            ended = subprocess.run([*run, *shown, f"--cov-fail-under={room.least}"], check=False).returncode
        print(f"{name}: {'at least' if ended == 0 else 'NOT'} {room.least} %", flush=True)
        below += ended != 0
    return below


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
