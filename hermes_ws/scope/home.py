"""Where profiles live: the layout of one home, and the root under which all of them lie.

Two layouts of the root. *Classic* is `HERMES_HOME`: the root itself is a home, others are `profiles/<name>/` below it.
*Directory* is `--profiles-root DIR`: homes are the directories in DIR, and `DIR/default` takes the root's place. In
both, a name goes in and a home that exists comes out, or ProfileUnknown; there is no fall-back (cases IDENT-05,
IDENT-06, IDENT-07). The deployment is never guessed from the shape of a path (case IDENT-13).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from hermes_ws.contract.errors import InvalidParams, ProfileUnknown, ProfileUnusable
from hermes_ws.scope.identity import LAUNCH_ALIAS, ROOT_ALIAS, ProfileName

HOMES = "profiles"
"""The directory in a classic root that holds the homes other than the root."""


@final
@dataclass(frozen=True, slots=True)
class ProfileHome:
    """One home. `path` is absolute and resolved; every file of a home has its place named here and nowhere else."""

    path: Path
    config: Path = field(init=False, repr=False, compare=False)
    """Made once: every answer about a setting names it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", self.path / "config.yaml")

    @property
    def env(self) -> Path:
        return self.path / ".env"

    @property
    def identity(self) -> Path:
        return self.path / "profile.json"

    @property
    def imported(self) -> Path:
        """Stands here while what the home would start by itself waits to be confirmed."""
        return self.path / "imported.json"

    @property
    def soul(self) -> Path:
        return self.path / "SOUL.md"

    @property
    def agents(self) -> Path:
        return self.path / "agents"

    @property
    def skills(self) -> Path:
        return self.path / "skills"

    @property
    def memories(self) -> Path:
        return self.path / "memories"

    @property
    def user(self) -> Path:
        """What children see as HOME, and the default working directory."""
        return self.path / "home"

    @property
    def temporary(self) -> Path:
        """TMPDIR of children: below their HOME, because that is what they are granted."""
        return self.user / ".tmp"

    @property
    def state(self) -> Path:
        return self.path / "state"

    @property
    def database(self) -> Path:
        return self.state / "sessions.db"

    @property
    def blobs(self) -> Path:
        return self.state / "blobs"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def lock(self) -> Path:
        return self.run / "owner.lock"

    @property
    def socket(self) -> Path:
        return self.run / "gateway.sock"

    @property
    def token(self) -> Path:
        return self.run / "token"

    @property
    def address(self) -> Path:
        """Where a browser finds the server that was started last."""
        return self.run / "address"

    @property
    def draining(self) -> Path:
        """Names the server that lets nobody in any more and still owns the home until what runs has ended."""
        return self.run / "draining"

    def contains(self, path: Path) -> bool:
        """Whether `path`, with all links resolved, is this home or lies in it."""
        return Path(os.path.realpath(path)).is_relative_to(self.path)

    def prepare(self) -> None:
        """Make the directories that a served home needs, 0700 each. The home itself must exist.

        Nothing is made for a home that was deleted meanwhile: raises FileNotFoundError then (case IDENT-05). What a
        command has put in the place of the directory for temporary files gives way to it.
        """
        for directory in (self.user, self.temporary, self.state, self.blobs, self.logs, self.cache, self.run):
            try:
                directory.mkdir(mode=0o700, exist_ok=True)
            except FileExistsError:
                if directory != self.temporary:
                    raise
                directory.unlink()
                directory.mkdir(mode=0o700)


@final
@dataclass(frozen=True, slots=True)
class HomesRoot:
    """The root of all homes that one server may serve, and which of them it was launched for.

    `flat` tells the layouts apart. `launch` is the launch profile's own name; it is `default` only when the root's home
    (or `DIR/default`) is the one that was launched.
    """

    path: Path
    flat: bool
    launch: ProfileName

    @classmethod
    def classic(cls, root: Path, launch: ProfileName | None = None) -> HomesRoot:
        """`HERMES_HOME`. Raises ProfileUnusable for a root called `profiles`, which would give profiles/profiles/x."""
        resolved = root.resolve()
        if resolved.name == HOMES:
            raise ProfileUnusable(
                f"{resolved} is a directory of homes, not a home.",
                hint=f"Serve it with --profiles-root {resolved}, or set HERMES_HOME to {resolved.parent}.",
            )
        return cls(resolved, flat=False, launch=_launched(launch))

    @classmethod
    def directory(cls, root: Path, launch: ProfileName | None = None) -> HomesRoot:
        """`--profiles-root DIR`."""
        return cls(root.resolve(), flat=True, launch=_launched(launch))

    @property
    def homes(self) -> Path:
        """The directory whose entries are homes."""
        return self.path if self.flat else self.path / HOMES

    @property
    def launched_root(self) -> bool:
        """Whether the root's own home is the launch profile."""
        return self.launch.text == LAUNCH_ALIAS

    def resolve(self, name: ProfileName) -> ProfileName:
        """The own name of the profile that `name` addresses: `default` becomes the launch profile's.

        Raises ProfileUnknown for `root` while the root's home is called `default`. Does not look at the disk.
        """
        if name.text == LAUNCH_ALIAS:
            return self.launch
        if name.text == ROOT_ALIAS and self.launched_root:
            raise _unknown(name)
        return name

    def find(self, name: ProfileName) -> ProfileHome:
        """The home of a profile. Raises ProfileUnknown when it is absent, or leads out of its place through links."""
        own = self.resolve(name)
        place = self._place(own)
        home = Path(os.path.realpath(place))  # Unlike Path.resolve, it does not raise for a loop of links.
        if not home.is_dir() or not self._is_own(home, place):
            raise _unknown(name)
        return ProfileHome(home)

    def names(self) -> tuple[ProfileName, ...]:
        """Every profile on disk by its own name, sorted, the launch profile first. One look at one directory."""
        found = {self.resolve(ProfileName(ROOT_ALIAS if not self.launched_root else LAUNCH_ALIAS))}
        if not self._place(next(iter(found))).is_dir():
            found.clear()
        try:
            with os.scandir(self.homes) as entries:
                for entry in entries:
                    name = self._listed(entry)
                    if name is not None:
                        found.add(name)
        except FileNotFoundError:
            pass
        return tuple(sorted(found, key=lambda name: (name != self.launch, name.text)))

    def homes_paths(self) -> tuple[Path, ...]:
        """What no working directory may open: the root, under which all homes lie.

        Every home lies under the root once its links are resolved, so the root stands for all of them, those included
        that are made later. When the root is itself a home below another root, that root is named as well.
        """
        if not self.flat and self.path.parent.name == HOMES:
            return (self.path, self.path.parent.parent)
        return (self.path,)

    def owner_of(self, path: str) -> str | None:
        """The home that a resolved absolute path lies in, as a path; None when it lies in none.

        The directory that only lists homes belongs to none of them. Looks at the text alone, in constant time.
        """
        root = str(self.path)
        if path != root and not path.startswith(root + os.sep):
            return None
        below = path[len(root) + 1 :].split(os.sep, 2)
        if self.flat:
            return f"{root}{os.sep}{below[0]}" if below[0] else None
        if below[0] != HOMES:
            return root
        return f"{root}{os.sep}{HOMES}{os.sep}{below[1]}" if len(below) > 1 else None

    def place(self, name: ProfileName) -> Path:
        """Where a profile of this name lies or would lie. Raises InvalidParams for names with a meaning."""
        if name.text in (LAUNCH_ALIAS, ROOT_ALIAS):
            raise InvalidParams(f"No profile can be called {name.text!r}: the name has a meaning.", path="name")
        return self._place(name)

    def _place(self, own: ProfileName) -> Path:
        """Where a profile with this own name would lie."""
        if own.text in (LAUNCH_ALIAS, ROOT_ALIAS):
            return self.path / LAUNCH_ALIAS if self.flat else self.path
        return self.homes / own.text

    def _is_own(self, home: Path, place: Path) -> bool:
        """Whether a resolved home lies under the root, and is not (in) the home of another name."""
        owner = self.owner_of(str(home))
        if owner is None:
            return False
        # In the classic layout the root owns what no other home does: a link may point there, but not at the root.
        return owner == str(place) or (not self.flat and owner == str(self.path) and home != self.path)

    def _listed(self, entry: os.DirEntry[str]) -> ProfileName | None:
        if entry.name in (LAUNCH_ALIAS, ROOT_ALIAS):
            return None  # In both layouts these names have a meaning of their own, and are no one's own name.
        try:
            name = ProfileName(entry.name)
            if entry.is_symlink():
                self.find(name)
            elif not entry.is_dir():
                return None
        except (ProfileUnknown, OSError):
            return None
        return name


def _launched(launch: ProfileName | None) -> ProfileName:
    if launch is None:
        return ProfileName(LAUNCH_ALIAS)
    if launch.text == ROOT_ALIAS:
        raise ProfileUnknown(
            "No profile can be launched as 'root'.", hint="Leave --profile out to launch the root's own home."
        )
    return launch


def _unknown(name: ProfileName) -> ProfileUnknown:
    return ProfileUnknown(f"There is no profile {name.text!r} here.", profile=name.text)
