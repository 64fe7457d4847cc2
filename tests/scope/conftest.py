"""Homes on a real disk: two profiles under one root, with secrets of one name and different values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import ProfileScope, load_scope

MakeHome = Callable[..., ProfileHome]
Load = Callable[..., ProfileScope]


@pytest.fixture
def root(tmp_path: Path) -> HomesRoot:
    path = tmp_path / "homes"
    path.mkdir()
    return HomesRoot.directory(path)


@pytest.fixture
def make_home(root: HomesRoot) -> MakeHome:
    def make(name: str, *, env: str = "", config: str = "") -> ProfileHome:
        (root.path / name).mkdir()
        home = root.find(ProfileName(name))
        home.prepare()
        if env:
            home.env.write_text(env, "utf-8")
            home.env.chmod(0o600)
        if config:
            home.config.write_text(config, "utf-8")
        return home

    return make


@pytest.fixture
def load(root: HomesRoot) -> Load:
    def load(home: ProfileHome, *, launch_secrets: dict[str, str] | None = None, loaded: int = 1) -> ProfileScope:
        name = ProfileName(home.path.name)
        return load_scope(name, home, launch_secrets=launch_secrets, loaded=loaded, homes=root.homes_paths())

    return load


@pytest.fixture
def a(make_home: MakeHome, load: Load) -> ProfileScope:
    return load(make_home("a", env="SHARED=value-of-A-0001\nONLY_A=only-in-A-0002\n"))


@pytest.fixture
def b(make_home: MakeHome, load: Load) -> ProfileScope:
    config = "terminal:\n  env: [SHARED, ONLY_B, ONLY_A]\n"
    return load(make_home("b", env="SHARED=value-of-B-0003\nONLY_B=only-in-B-0004\n", config=config))


@pytest.fixture
def home(make_home: MakeHome) -> ProfileHome:
    return make_home("work")
