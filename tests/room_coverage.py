"""How much of each room its tests go through, and how much they must: `make coverage`.

It is not part of `make test`: measuring costs a quarter more of the processor, and what would be measured there says
nothing of a room's own tests. All rooms take a quarter of an hour; one that was changed is measured by its name. What
else is run with this environment meanwhile is measured as well: run nothing else.

Branches are counted. What a room's own tests prove alone is measured with these alone; a room whose tests speak to a
served one from outside is measured in that process as well. A figure here only ever rises.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
        "session": Room(("tests/session", "tests/real/test_ssh.py", "tests/real/test_docker_engine.py"), 93),
        "server": Room(("tests/server", "tests/transports", "tests/e2e/test_credentials.py"), 92),
        "methods": Room(("tests/methods", "tests/permissions", "tests/leak/test_methods.py"), 93),
    }
)

ROOT = Path(__file__).parent.parent

UNSEEN = ("if TYPE_CHECKING:", r"\.\.\.$", "assert_never")
"""Lines that never run: they are for those who read types."""


def measure(name: str) -> bool:
    """Run the tests of a room and show what they left out. Whether that is no more than it may be."""
    room = ROOMS[name]
    with tempfile.TemporaryDirectory() as place:
        config = Path(place) / "coverage.ini"
        excluded = "".join(f"\n    {each}" for each in UNSEEN)
        config.write_text(
            f"[run]\nbranch = true\nsource = {ROOT}/hermes_ws/{name}\ndata_file = {place}/data\nparallel = true\n"
            f"disable_warnings = no-data-collected,module-not-imported\n[report]\nexclude_also ={excluded}\n"
        )
        with in_every_process(config):
            ran = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *room.tests], check=False
            )
        for what in (("combine", "-q"), ("report", "-m", "--skip-covered", f"--fail-under={room.least}")):
            told = subprocess.run([sys.executable, "-m", "coverage", *what, f"--rcfile={config}"], check=False)
    return ran.returncode == 0 and told.returncode == 0


@contextmanager
def in_every_process(config: Path) -> Iterator[None]:
    """Have each Python of this environment measured that starts meanwhile. A server hands nothing of its environment on
    to its second life, so that a file is what tells it; children of a warden read no such file.
    """
    told = Path(sysconfig.get_path("purelib")) / "measured.pth"
    begin = f"coverage.Coverage(config_file={str(config)!r}, data_suffix=True, auto_data=True).start()"
    told.write_text(f"import os; os.path.exists({str(config)!r}) and exec({f'import coverage; {begin}'!r})\n")
    try:
        yield
    finally:
        told.unlink()


def main(names: list[str]) -> int:
    """Measure the rooms that are named, or all; how many are below their figure."""
    below = 0
    for name in names or ROOMS:
        enough = measure(name)
        print(f"{name}: {'at least' if enough else 'NOT'} {ROOMS[name].least} %", flush=True)
        below += not enough
    return below


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
