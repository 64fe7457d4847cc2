"""What the documentation says is what the declarations say, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import pages
from docs.life_cycles import CYCLES, Cycle

ROOT = Path(__file__).parent.parent
GENERATED = pages()
PAGES = sorted((*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"))


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_the_reference_is_current(name: str) -> None:
    path = ROOT / name
    assert path.exists(), "run `make docs`"
    assert path.read_text("utf-8") == GENERATED[name], "run `make docs` and commit what it writes"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{target} is not there"


@pytest.mark.parametrize("cycle", CYCLES, ids=lambda cycle: cycle.of)
def test_every_state_is_reached_and_everything_that_happens_moves_something(cycle: Cycle) -> None:
    states, happenings = type(cycle.start), type(next(iter(cycle.table))[1])
    assert {cycle.start, *cycle.table.values()} == set(states)
    assert {happened for _, happened in cycle.table} == set(happenings)
