"""Skills of a home: found, read, and never looked for outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_ws.agent import skills
from hermes_ws.contract.errors import NotFound, ProfileUnusable
from hermes_ws.scope.home import ProfileHome


@pytest.fixture
def home(tmp_path: Path) -> ProfileHome:
    return ProfileHome(tmp_path.resolve())


def write(home: ProfileHome, place: str, text: str) -> Path:
    path = home.skills / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_home_without_skills_has_none(home: ProfileHome) -> None:
    assert skills.list(home) == ()
    with pytest.raises(NotFound, match="no skill 'x'"):
        skills.view(home, "x")


def test_skills_are_found_with_and_without_a_category(home: ProfileHome) -> None:
    write(home, "brew/SKILL.md", "---\ndescription: How to\n  brew tea.\n---\nBoil water.\n")
    write(home, "web/scrape/SKILL.md", "# Scrape pages\n\nCarefully.\n")
    write(home, "web/.hidden/SKILL.md", "no")
    brew, scrape = skills.list(home)
    assert (brew.name, brew.category, brew.description) == ("brew", None, "How to brew tea.")
    assert (scrape.name, scrape.category, scrape.description) == ("scrape", "web", "Scrape pages")
    assert skills.view(home, "brew").text == "Boil water."


def test_files_beside_a_skill_are_named_and_can_be_read(home: ProfileHome) -> None:
    write(home, "brew/SKILL.md", "---\ndescription: tea\n---\nSee times.md.\n")
    write(home, "brew/refs/times.md", "Three minutes.")
    found = skills.view(home, "brew")
    assert found.files == ("refs/times.md",)
    assert skills.view(home, "brew", "refs/times.md").text == "Three minutes."
    assert "refs/times.md" in skills.rendered(found)
    with pytest.raises(NotFound):
        skills.view(home, "brew", "../../.env")


def test_nothing_outside_of_the_home_is_a_skill(home: ProfileHome, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "SKILL.md").write_text("---\ndescription: foreign\n---\n")
    (elsewhere / "notes.md").write_text("foreign")
    home.skills.mkdir()
    (home.skills / "foreign").symlink_to(elsewhere)
    assert skills.list(home) == ()
    write(home, "own/SKILL.md", "own")
    (home.skills / "own" / "link.md").symlink_to(elsewhere / "notes.md")
    assert skills.view(home, "own").files == ()


def test_a_broken_skill_is_listed_with_what_is_wrong(home: ProfileHome) -> None:
    write(home, "broken/SKILL.md", "---\ndescription: [\n---\n")
    write(home, "endless/SKILL.md", "---\ndescription: x\n")
    broken, endless = skills.list(home)
    assert "not YAML" in broken.problem
    assert "no end" in endless.problem
    with pytest.raises(ProfileUnusable):
        skills.view(home, "broken")


def test_a_name_that_is_almost_right_is_guessed(home: ProfileHome) -> None:
    write(home, "brewing/SKILL.md", "x")
    with pytest.raises(NotFound, match="Did you mean brewing"):
        skills.view(home, "brewin")
