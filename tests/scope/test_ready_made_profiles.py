"""The homes in `profiles/`, which a newcomer serves at once: they load, and they show what profiles are for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from hermes_ws.agent import definition, skills
from hermes_ws.scope import dotenv
from hermes_ws.scope.config import ProfileConfig, load_config, parse_config
from hermes_ws.scope.home import HomesRoot
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import ProfileScope, load_scope

PROFILES = Path(__file__).parents[2] / "profiles"
NAMES = ("default", "ops", "research")


@pytest.fixture
def served(tmp_path: Path) -> dict[str, ProfileScope]:
    shutil.copytree(PROFILES, tmp_path / "homes")
    root = HomesRoot.directory(tmp_path / "homes")
    scopes = {}
    for name in root.names():
        home = root.find(name)
        home.prepare()
        scopes[name.text] = load_scope(name, home, launch_secrets=None, loaded=1, homes=root.homes_paths())
    return scopes


def test_all_of_them_load_without_a_key(served: dict[str, ProfileScope]) -> None:
    assert tuple(served) == NAMES
    for scope in served.values():
        assert scope.config.foreign == ()
        assert scope.config.model.provider == "loopback"
        assert scope.problems == ()


def test_they_differ_in_model_directories_and_policy(served: dict[str, ProfileScope]) -> None:
    scopes = list(served.values())
    assert len({scope.config.model.model_dump_json() for scope in scopes}) == 3
    assert len({scope.terminal.directories for scope in scopes}) == 3
    assert len({(scope.terminal.network, scope.terminal.deadline_s) for scope in scopes}) == 3


def test_a_session_without_a_directory_of_its_own_may_begin(served: dict[str, ProfileScope]) -> None:
    for scope in served.values():
        directory = scope.terminal.cwd or scope.home.user
        homes = (scope.home.path.parent,)
        assert scope.terminal.check_directory(directory, home=scope.home, homes=homes) == scope.home.user


def test_their_agents_may_use_what_lies_in_the_home(served: dict[str, ProfileScope]) -> None:
    for scope in served.values():
        assert scope.config.agent.default is not None
        agent = definition.load(scope.home, scope.config.agent.default)
        wanted = scope.config.agent.toolsets if agent.toolsets is None else agent.toolsets
        assert skills.list(scope.home)
        assert {"skills", "mcp"} <= set(wanted), "skills and tool servers of the home would be out of reach"


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_an_own_model_is_right(name: str) -> None:
    """What a person gets who follows the comments."""
    text = (PROFILES / name / "config.yaml").read_text()
    block = re.search(r"^# providers:\n(?:#  .*\n)+", text, re.MULTILINE)
    assert block is not None
    config = parse_config(block.group().replace("# ", "", 1).replace("\n# ", "\n").encode(), PROFILES / name)
    [provider] = config.providers.values()
    assert provider.kind == "openai"
    assert provider.base_url is not None
    assert provider.api_key is not None
    key = provider.api_key.strip("${}")
    assert f"# {key}=" in (PROFILES / name / ".env.example").read_text()
    assert next(iter(config.providers)) in text.split("# providers:")[0]


@pytest.mark.parametrize("name", NAMES)
def test_each_has_its_soul_an_agent_and_a_skill(name: str) -> None:
    home = PROFILES / name
    config: ProfileConfig = load_config(home / "config.yaml")
    assert (home / "SOUL.md").read_text().strip()
    assert [path.stem for path in (home / "agents").iterdir()] == [config.agent.default]
    [skill] = (home / "skills").iterdir()
    for page in (home / "agents" / f"{config.agent.default}.md", skill / "SKILL.md"):
        front = page.read_text().split("---\n")[1]
        assert f"name: {page.parent.name if page.name == 'SKILL.md' else page.stem}\n" in front
        assert "description: " in front
    ProfileName.parse(name)


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_comes_with_them(name: str) -> None:
    assert not (PROFILES / name / ".env").exists()
    parsed = dotenv.parse((PROFILES / name / ".env.example").read_text())
    assert dict(parsed.values) == {}
    assert parsed.problems == ()
