"""The sections of `config.yaml` on where commands run and what they may do; see `sections.py`."""

from __future__ import annotations

from typing import Annotated, Literal, final

from pydantic import Field

from hermes_ws.scope.sections import Bytes, Count, PathText, Seconds, Section, Variable


@final
class RemoteConfig(Section):
    """A machine that is reached over SSH."""

    host: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9_.:\[\]-]*$")]
    """The machine, or a name of it in the profile's own home/.ssh/config."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Where it listens; absent means as its config says, else 22."""
    user: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")] | None = None
    """Whom to log in as; absent means as its config says."""
    connect_s: Seconds = 15
    """Until a connection must stand."""


@final
class ContainerConfig(Section):
    """A container that commands run in."""

    image: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./:@-]*$")]
    """What the container is made of; it needs a shell. Credentials of registries are the profile's own, in the home's
    state/engine (`docker --config` with that directory, `login`)."""
    volumes: tuple[PathText, ...] = ()
    """Directories of this machine in the container, for example /srv/data:/data:ro."""
    socket: PathText = "/run/docker.sock"
    """Where the engine listens."""
    network: Literal["none", "bridge"] = "bridge"
    """`terminal.network: deny` means none."""


@final
class TerminalConfig(Section):
    """What the commands of agents may do, and where."""

    backend: Literal["local", "ssh", "docker"] = "local"
    """Where commands run: confined on this machine, on another one over SSH, or in a container."""
    cwd: PathText | None = None
    """Where sessions begin that name no directory; absent means the home's own home/."""
    directories: tuple[PathText, ...] | None = None
    """Below which a session's directory must lie; absent means anywhere that the user may, [] nowhere but in home/."""
    read: tuple[PathText, ...] = ()
    """Files and directories that every command may read, besides the session's directory."""
    write: tuple[PathText, ...] = ()
    """Files and directories that every command may change, besides the session's directory."""
    env: tuple[Variable, ...] = ()
    """The names of secrets that commands find in their environment."""
    network: Literal["allow", "deny"] = "allow"
    """Whether commands reach any network."""
    confine: Literal["auto", "required", "off"] = "auto"
    """`auto` takes what the machine offers and says so, `required` refuses commands without Landlock."""
    unix_sockets: Literal["deny", "allow"] = "deny"
    """`allow` lets commands speak to the session bus, Docker and agents of the user, which are outside of all this."""
    deadline_s: Seconds = 120
    """Until a command is ended."""
    output_bytes: Bytes = 1_048_576
    """Kept of a command's output: its beginning and its end."""
    memory_bytes: Bytes | None = None
    """What a command and all that it started may take together, where the machine can tell; else each by itself."""
    processes: Count | None = 512
    """At once, of one command and all that it started: enough for a parallel build, and the end of a fork bomb."""
    open_files: Annotated[int, Field(ge=32, le=1_048_576)] = 4096
    """At once, of one process."""
    file_bytes: Bytes | None = None
    """The size of the largest file that a command may write."""
    cpu_s: Count | None = None
    """Processor seconds of one process."""
    disk_bytes: Bytes | None = None
    """What home/ may hold, measured while commands run; they are ended when it holds more. What is deleted and still
    open is not counted."""
    user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]*[$]?$", max_length=32)] | None = None
    """Whom commands run as, where the server is root and bubblewrap is installed; absent means as the server."""
    background: Literal["end", "keep"] = "end"
    """What becomes of background processes and terminals of a session that is closed or deleted."""
    home: Literal["profile", "user"] = "profile"
    """What commands see as HOME: the home's own home/, or that of the server's user, of which nothing is granted."""
    caches: Literal["profile", "shared"] = "profile"
    """`shared` grants the user's own ~/.cache, so that packages are fetched once for all profiles that say so."""
    ssh: tuple[PathText, ...] = ()
    """Private keys that git and ssh may use, for example ~/.ssh/id_work; none is granted otherwise."""
    toolchains: Literal["auto", "none"] = "auto"
    """`auto` grants the tool directories of the user that are on PATH, such as ~/.cargo/bin, without writing."""
    remote: RemoteConfig | None = None
    """The machine of the ssh backend. Keys, config and known_hosts are those in the home's own home/.ssh."""
    container: ContainerConfig | None = None
    """The container of the docker backend."""
