from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_ws.contract.errors import DirectoryRefused, ProfileUnusable
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.terminal import TerminalPolicy, load_policy
from hermes_ws.scope.terminal_sections import TerminalConfig


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "user" / "work"
    (work / "project").mkdir(parents=True)
    return work


@pytest.fixture
def user(work: Path) -> Path:
    return work.parent


def policy(home: ProfileHome, root: HomesRoot, user: Path, **settings: object) -> TerminalPolicy:
    config = TerminalConfig.model_validate(settings)
    return load_policy(config, home=home, homes=root.homes_paths(), user_home=user)


def test_settings_become_the_policy_as_they_are(home: ProfileHome, root: HomesRoot, user: Path) -> None:
    loaded = policy(home, root, user, network="deny", deadline_s=5, memory_bytes=4096, env=["A", "B"])
    assert (loaded.network, loaded.deadline_s, loaded.memory_bytes, loaded.env) == ("deny", 5, 4096, ("A", "B"))
    assert (loaded.directories, loaded.cwd, loaded.read) == (None, None, ())


def test_paths_are_meant_from_the_users_home_or_the_homes_own(home: ProfileHome, root: HomesRoot, user: Path) -> None:
    loaded = policy(home, root, user, cwd="~/work", directories=["~", "notes", "/srv"], write=["~/work"])
    assert loaded.cwd == user / "work"
    assert loaded.directories == (user, home.user / "notes", Path("/srv"))
    assert loaded.write == (user / "work",)


def test_the_users_home_is_that_of_the_account_by_default(home: ProfileHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/elsewhere")
    loaded = load_policy(TerminalConfig(cwd="~"), home=home, homes=())
    assert loaded.cwd is not None
    assert loaded.cwd != Path("/elsewhere")


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"env": ["A", "PATH"]}, "terminal.env[1]"),
        ({"env": ["ld_preload"]}, "terminal.env[0]"),
        ({"read": ["~/absent"]}, "terminal.read[0]"),
        ({"write": ["~/work", "~/absent"]}, "terminal.write[1]"),
        ({"cwd": "~other/x"}, "terminal.cwd"),
        ({"cwd": "C:\\x"}, "terminal.cwd"),
        ({"cwd": "\\\\server\\x"}, "terminal.cwd"),
        ({"directories": ["a\0b"]}, "terminal.directories[0]"),
    ],
)
def test_what_cannot_be_granted_is_named_by_its_key(
    home: ProfileHome, root: HomesRoot, user: Path, settings: dict[str, object], key: str
) -> None:
    """Case TERM-09 among them: a path of Windows is refused when it is loaded."""
    with pytest.raises(ProfileUnusable) as refused:
        policy(home, root, user, **settings)
    assert refused.value.data["key"] == key
    assert key in refused.value.message
    assert str(home.config) in refused.value.message


@pytest.mark.parametrize("setting", ["read", "write"])
@pytest.mark.parametrize("place", ["other", "other/home", "other/.env", ".", "..", "/", "work/state", "link"])
def test_a_grant_that_would_open_a_home_is_refused(
    home: ProfileHome, root: HomesRoot, user: Path, setting: str, place: str
) -> None:
    (root.path / "other" / "home").mkdir(parents=True)
    (root.path / "other" / ".env").write_text("")
    (root.path.parent / "link").symlink_to(root.path / "other")
    path = root.path.parent / "link" if place == "link" else root.path / place
    with pytest.raises(ProfileUnusable, match="home"):
        policy(home, root, user, **{setting: [str(path)]})


def test_the_homes_own_home_may_be_granted(home: ProfileHome, root: HomesRoot, user: Path) -> None:
    assert policy(home, root, user, write=["."]).write == (home.user,)


def test_any_directory_of_the_user_may_be_worked_in_by_default(
    home: ProfileHome, root: HomesRoot, user: Path, work: Path
) -> None:
    loaded = policy(home, root, user)
    assert loaded.check_directory(work, home=home, homes=root.homes_paths()) == work
    assert loaded.check_directory(home.user, home=home, homes=root.homes_paths()) == home.user


def test_a_directory_must_lie_below_what_is_granted(home: ProfileHome, root: HomesRoot, user: Path, work: Path) -> None:
    (user / "workshop").mkdir()
    (work / "out").symlink_to(user)
    loaded = policy(home, root, user, directories=["~/work", "~/not-there-yet"])
    homes = root.homes_paths()
    assert loaded.check_directory(work / "project", home=home, homes=homes) == work / "project"
    assert loaded.check_directory(work, home=home, homes=homes) == work
    for outside in (user, user / "workshop", work / "out", work / ".." / "workshop"):
        with pytest.raises(DirectoryRefused, match=r"terminal\.directories") as refused:
            loaded.check_directory(outside, home=home, homes=homes)
        assert "terminal.directories" in refused.value.hint


def test_with_no_directory_granted_only_the_homes_own_remains(
    home: ProfileHome, root: HomesRoot, user: Path, work: Path
) -> None:
    (home.user / "sub").mkdir()
    loaded = policy(home, root, user, directories=[])
    assert loaded.check_directory(home.user / "sub", home=home, homes=root.homes_paths()) == home.user / "sub"
    with pytest.raises(DirectoryRefused):
        loaded.check_directory(work, home=home, homes=root.homes_paths())


@pytest.mark.parametrize("place", ["other", "other/home", ".", "..", "/", "work", "work/state", "link"])
@pytest.mark.parametrize("directories", [None, ["/"]])
def test_a_directory_that_would_open_a_home_is_refused(
    home: ProfileHome, root: HomesRoot, user: Path, place: str, directories: list[str] | None
) -> None:
    """Cases TERM-02, TERM-10: whatever else is granted."""
    (root.path / "other" / "home").mkdir(parents=True)
    (root.path.parent / "link").symlink_to(root.path / "other" / "home")
    path = root.path.parent / "link" if place == "link" else root.path / place
    with pytest.raises(DirectoryRefused, match="home") as refused:
        policy(home, root, user, directories=directories).check_directory(path, home=home, homes=root.homes_paths())
    assert refused.value.data["directory"] == str(path)


@pytest.mark.parametrize(
    ("place", "because"),
    [
        ("absent", "does not exist"),
        ("file", "not a directory"),
        ("loop", "does not exist or cannot be reached"),
        ("file/x", "does not exist or cannot be reached"),
        ("a\0b", "does not exist or cannot be reached"),
        ("${D}/w", "does not exist"),
    ],
)
def test_a_missing_directory_is_an_error_and_no_fall_back(
    home: ProfileHome, root: HomesRoot, user: Path, place: str, because: str
) -> None:
    """Cases TERM-03, TERM-04, TERM-05."""
    (user / "file").write_text("")
    (user / "loop").symlink_to("loop")
    with pytest.raises(DirectoryRefused, match=because):
        policy(home, root, user).check_directory(user / place, home=home, homes=root.homes_paths())


@pytest.mark.parametrize("text", ["work", ".", "C:\\x", ""])
def test_a_relative_directory_is_refused(home: ProfileHome, root: HomesRoot, user: Path, text: str) -> None:
    """Cases TERM-06, TERM-09, TERM-10: nothing depends on where the server was started."""
    with pytest.raises(DirectoryRefused, match="absolute"):
        policy(home, root, user).check_directory(Path(text), home=home, homes=root.homes_paths())


def test_a_directory_that_the_user_may_not_read_is_refused(
    home: ProfileHome, root: HomesRoot, user: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != work)  # Root may read everything.
    with pytest.raises(DirectoryRefused, match="may not read"):
        policy(home, root, user).check_directory(work, home=home, homes=root.homes_paths())


def test_a_directory_on_another_machine_is_taken_as_it_is(home: ProfileHome, root: HomesRoot, user: Path) -> None:
    remote = policy(home, root, user, backend="ssh", remote={"host": "far.example"}, cwd="~/src")
    assert remote.cwd == Path("~/src")
    assert remote.remote is not None
    for directory, taken in ((home.user, Path("~")), (Path("/srv"), Path("/srv")), (Path("~/src"), Path("~/src"))):
        assert remote.check_directory(directory, home=home, homes=root.homes_paths()) == taken
    for directory in (Path("src"), Path("~other/src"), Path("/srv/\0")):
        with pytest.raises(DirectoryRefused):
            remote.check_directory(directory, home=home, homes=root.homes_paths())


@pytest.mark.parametrize(("backend", "key"), [("ssh", "terminal.remote"), ("docker", "terminal.container")])
def test_a_backend_elsewhere_says_where(home: ProfileHome, root: HomesRoot, user: Path, backend: str, key: str) -> None:
    with pytest.raises(ProfileUnusable) as refused:
        policy(home, root, user, backend=backend)
    assert refused.value.data["key"] == key


def test_what_a_container_sees_of_this_machine_is_granted_like_anything_else(
    home: ProfileHome, root: HomesRoot, user: Path
) -> None:
    def container(*volumes: str) -> TerminalPolicy:
        return policy(home, root, user, backend="docker", container={"image": "debian:12", "volumes": list(volumes)})

    found = container("~/work:/work:ro", "~/work/project:/project").container
    assert found is not None
    assert found.volumes == (f"{user}/work:/work:ro", f"{user}/work/project:/project")
    for volume in (
        "~/work",
        "~/work:work",
        "~/work:/work:rx",
        "~/work:/work:ro:z",
        "~/absent:/x",
        f"{root.path}:/homes",
    ):
        with pytest.raises(ProfileUnusable) as refused:
            container("~/work:/work", volume)
        assert refused.value.data["key"] == "terminal.container.volumes[1]"
