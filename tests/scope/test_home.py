from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hermes_ws.contract.errors import InvalidParams, ProfileUnknown, ProfileUnusable
from hermes_ws.scope.home import HomesRoot, ProfileHome
from hermes_ws.scope.identity import ProfileName

DEFAULT, ROOT, B, C = map(ProfileName, ("default", "root", "b", "c"))


@pytest.fixture
def classic_root(tmp_path: Path) -> Path:
    root = tmp_path / "hermes"
    for name in ("b", "c"):
        (root / "profiles" / name).mkdir(parents=True)
    return root


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    root = tmp_path / "homes"
    for name in ("default", "b", "c"):
        (root / name).mkdir(parents=True)
    return root


def test_the_root_is_the_default_profile_of_a_classic_layout(classic_root: Path) -> None:
    root = HomesRoot.classic(classic_root)
    assert root.names() == (DEFAULT, B, C)
    assert root.find(DEFAULT).path == classic_root
    assert root.find(B).path == classic_root / "profiles" / "b"


def test_default_is_the_launch_profile_and_never_the_root(classic_root: Path) -> None:
    """GLOBAL-04: Case IDENT-08: the choice at launch holds, whatever else the root's home is called."""
    root = HomesRoot.classic(classic_root, B)
    assert root.names() == (B, C, ROOT)
    assert root.resolve(DEFAULT) == B
    assert root.find(DEFAULT).path == classic_root / "profiles" / "b"
    assert root.find(ROOT).path == classic_root


def test_a_directory_of_homes_has_default_in_the_place_of_the_root(directory: Path) -> None:
    root = HomesRoot.directory(directory)
    assert root.names() == (DEFAULT, B, C)
    assert root.find(DEFAULT).path == directory / "default"


def test_a_directory_of_homes_can_be_launched_as_another_profile(directory: Path) -> None:
    root = HomesRoot.directory(directory, B)
    assert root.names() == (B, C, ROOT)
    assert root.find(DEFAULT).path == directory / "b"
    assert root.find(ROOT).path == directory / "default"


def test_root_is_unknown_while_the_root_itself_is_launched(directory: Path, classic_root: Path) -> None:
    for root in (HomesRoot.directory(directory), HomesRoot.classic(classic_root)):
        with pytest.raises(ProfileUnknown):
            root.find(ROOT)


def test_launching_default_is_launching_the_root(classic_root: Path) -> None:
    assert HomesRoot.classic(classic_root, DEFAULT) == HomesRoot.classic(classic_root)


def test_nothing_is_launched_as_root(classic_root: Path) -> None:
    with pytest.raises(ProfileUnknown, match="root"):
        HomesRoot.classic(classic_root, ROOT)


@pytest.mark.parametrize("reserved", ["default", "root"])
def test_a_reserved_name_on_disk_is_no_profile_of_its_own(classic_root: Path, reserved: str) -> None:
    (classic_root / "profiles" / reserved).mkdir()
    assert HomesRoot.classic(classic_root).names() == (DEFAULT, B, C)
    assert HomesRoot.classic(classic_root, B).find(ROOT).path == classic_root


def test_a_missing_profile_is_unknown_and_nothing_is_made(classic_root: Path) -> None:
    """Cases IDENT-05, IDENT-06, IDENT-07: no fall-back, and nothing on disk."""
    root = HomesRoot.classic(classic_root)
    before = sorted(classic_root.rglob("*"))
    with pytest.raises(ProfileUnknown) as refused:
        root.find(ProfileName("nope"))
    assert refused.value.data["profile"] == "nope"
    assert sorted(classic_root.rglob("*")) == before


def test_a_deleted_home_is_not_made_again(home: ProfileHome, root: HomesRoot) -> None:
    """Case IDENT-05."""
    home.path.rename(root.path / ".gone")
    with pytest.raises(FileNotFoundError):
        home.prepare()
    assert not home.path.exists()


def test_a_missing_launch_profile_is_unknown_and_not_listed(tmp_path: Path) -> None:
    root = HomesRoot.directory(tmp_path)
    assert root.names() == ()
    with pytest.raises(ProfileUnknown):
        root.find(DEFAULT)
    assert HomesRoot.classic(tmp_path / "absent").names() == ()


@pytest.mark.parametrize("target", ["../../outside", "..", ".", "c", "c/home", "/", "absent", "b"])
def test_a_link_that_leads_elsewhere_is_no_profile(directory: Path, target: str) -> None:
    """Cases IDENT-01, IDENT-03: containment is checked after links, and one home has one name."""
    (directory.parent / "outside").mkdir()
    (directory.parent / "home").mkdir()
    (directory / "c" / "home").mkdir()
    (directory / "b").rmdir()
    (directory / "b").symlink_to(target)
    root = HomesRoot.directory(directory)
    with pytest.raises(ProfileUnknown):
        root.find(B)
    assert B not in root.names()


def test_a_link_in_a_classic_root_may_lead_below_the_root_and_not_to_it(classic_root: Path) -> None:
    (classic_root / "disk" / "b").mkdir(parents=True)
    (classic_root / "profiles" / "b").rmdir()
    (classic_root / "profiles" / "b").symlink_to("../disk/b")
    root = HomesRoot.classic(classic_root)
    assert root.find(B).path == classic_root / "disk" / "b"
    assert B in root.names()
    (classic_root / "profiles" / "b").unlink()
    (classic_root / "profiles" / "b").symlink_to("..")
    with pytest.raises(ProfileUnknown):
        root.find(B)


def test_what_is_no_directory_or_no_name_is_not_listed(directory: Path) -> None:
    (directory / "file").write_text("")
    (directory / "Upper").mkdir()
    (directory / ".staged").mkdir()
    root = HomesRoot.directory(directory)
    assert root.names() == (DEFAULT, B, C)
    with pytest.raises(ProfileUnknown):
        root.find(ProfileName("file"))


def test_a_root_called_profiles_is_refused_with_what_to_write_instead(tmp_path: Path) -> None:
    """Case IDENT-10: it would lead to profiles/profiles/x."""
    with pytest.raises(ProfileUnusable) as refused:
        HomesRoot.classic(tmp_path / "profiles")
    assert "--profiles-root" in refused.value.hint
    assert HomesRoot.directory(tmp_path / "profiles").homes == tmp_path / "profiles"


def test_a_home_below_another_root_is_served_as_any_other(classic_root: Path) -> None:
    """Case IDENT-13: nothing is guessed from the path, but the other root is kept closed."""
    root = HomesRoot.classic(classic_root / "profiles" / "b")
    assert root.find(DEFAULT).path == classic_root / "profiles" / "b"
    assert root.homes_paths() == (classic_root / "profiles" / "b", classic_root)
    assert HomesRoot.classic(classic_root).homes_paths() == (classic_root,)


def test_a_path_belongs_to_the_home_it_lies_in(tmp_path: Path) -> None:
    flat = HomesRoot.directory(tmp_path)
    assert flat.owner_of(f"{tmp_path}/b/state/x") == f"{tmp_path}/b"
    assert flat.owner_of(f"{tmp_path}/b") == f"{tmp_path}/b"
    assert flat.owner_of(str(tmp_path)) is None
    assert flat.owner_of(f"{tmp_path}x/b") is None
    classic = HomesRoot.classic(tmp_path)
    assert classic.owner_of(f"{tmp_path}/profiles/b/.env") == f"{tmp_path}/profiles/b"
    assert classic.owner_of(f"{tmp_path}/profiles") is None
    assert classic.owner_of(f"{tmp_path}/.env") == str(tmp_path)
    assert classic.owner_of(str(tmp_path)) == str(tmp_path)
    assert classic.owner_of("/") is None


def test_a_home_contains_what_lies_in_it_once_links_are_resolved(home: ProfileHome, tmp_path: Path) -> None:
    (home.user / "out").symlink_to(tmp_path)
    assert home.contains(home.path)
    assert home.contains(home.state / "sessions.db")
    assert not home.contains(home.user / "out" / "x")
    assert not home.contains(home.path / ".." / "x")


def test_the_directories_of_a_home_are_for_its_owner_alone(home: ProfileHome) -> None:
    home.prepare()  # A second time changes nothing.
    for path in (home.user, home.temporary, home.state, home.blobs, home.logs, home.cache, home.run):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["file", "link that leads nowhere"])
def test_what_a_command_leaves_in_the_place_of_its_temporary_files_gives_way(home: ProfileHome, what: str) -> None:
    home.prepare()
    home.temporary.rmdir()
    if what == "file":
        home.temporary.touch()
    else:
        home.temporary.symlink_to("/nowhere/at/all")
    home.prepare()
    assert home.temporary.is_dir()
    assert not home.temporary.is_symlink()
    home.logs.rmdir()
    home.logs.touch()
    with pytest.raises(FileExistsError):
        home.prepare()


def test_every_path_of_a_home_lies_in_it() -> None:
    home = ProfileHome(Path("/homes/b"))
    paths = [getattr(home, name) for name in vars(type(home)) if isinstance(vars(type(home))[name], property)]
    assert len(paths) >= 17
    assert all(path.is_relative_to("/homes/b/") and path != home.path for path in paths)


def test_a_profile_that_is_made_has_its_place_and_no_name_with_a_meaning(classic_root: Path, directory: Path) -> None:
    made = ProfileName("made")
    assert HomesRoot.classic(classic_root).place(made) == classic_root / "profiles" / "made"
    assert HomesRoot.directory(directory).place(made) == directory / "made"
    for name in (DEFAULT, ROOT):
        with pytest.raises(InvalidParams, match="has a meaning"):
            HomesRoot.classic(classic_root).place(name)
