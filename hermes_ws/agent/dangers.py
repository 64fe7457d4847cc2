"""What can do harm that is hard to undo: the patterns that are on by default.

Deleting, gaining privileges, running what a network gives, touching credentials, rewriting history. A danger is no
verdict: it keeps broad permissions (a rule with a pattern, `mode: auto`, what was allowed for a session by its first
words) from covering a command, and it is told in the question. A command that hides what it runs counts as what it
mentions, so the patterns can be too strict and never too lax.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from hermes_ws.agent.commandline import CommandLine, Part, mentions
from hermes_ws.agent.programs import ALWAYS_CODE, WRAPPERS, Options, is_interpreter, names, program

DELETES: Final = "it deletes"
PRIVILEGES: Final = "it gains or gives away privileges"
NETWORK: Final = "it runs what a network gives"
CREDENTIALS: Final = "it touches credentials"
HISTORY: Final = "it rewrites or discards history"

_DELETING: Final = names("rm rmdir unlink shred wipefs srm blkdiscard dd fdisk parted mkswap")
_PRIVILEGED: Final = names(
    "sudo sudoedit doas su pkexec runuser setcap visudo usermod useradd groupadd gpasswd passwd chpasswd chown chgrp "
    "mount umount insmod modprobe nsenter unshare chroot setfacl systemctl"
)
_FETCHING: Final = names("curl wget fetch aria2c http https lynx nc ncat netcat socat ftp")

_ELSEWHERE: Final = names("ssh docker podman kubectl flatpak lxc vagrant wsl adb")
"""They have something done by others, whose command is among their arguments."""

_SECRET_NAMES: Final = (
    *(".env", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".ssh", ".aws", ".gnupg"),
    *(".kube", ".azure", ".password-store", ".vault-token", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
)
_CREDENTIAL: Final = re.compile(
    r"(?:^|[/@=:~])(?:\.ssh|\.aws|\.gnupg|\.kube|\.azure|\.password-store)(?:/|$)"
    r"|(?:^|[/@=:])(?:\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|\.vault-token)$"
    r"|(?:^|[/@=:])\.env(?:$|\.(?!(?:example|sample|template|dist|defaults?)$)[^/]*$)"
    r"|(?:^|[/@=:])id_(?:rsa|dsa|ecdsa|ed25519)$"
    r"|\.config/(?:gh|gcloud|hub|git/credentials)"
    r"|\.docker/config\.json"
    r"|(?:^|[@=:])/etc/(?:g?shadow|sudoers)"
    r"|(?:^|[@=:])/proc/[^/]+/environ"
)
_REVEALING: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "gpg": ("--export-secret-keys", "--export-secret-subkeys"),
        "gh": ("auth token",),
        "aws": ("configure export-credentials",),
        "security": ("find-generic-password", "find-internet-password", "dump-keychain"),
        "pass": ("",),
        "secret-tool": ("",),
    }
)

_GIT_OPTIONS_WITH_VALUE: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"})
_PUSH: Final = Options(
    "fd", ("--force", "--force-with-lease", "--force-if-includes", "--mirror", "--delete", "--prune")
)
_Check = Callable[[Sequence[str]], bool]


def danger_of(part: Part, line: CommandLine, *, hides: bool) -> str | None:
    """What is dangerous about a part of a line, as words that follow "because"; None when nothing known is.

    `hides` tells that its words do not tell what it runs: then whatever the line mentions counts. So it does for a line
    that could not be taken apart.
    """
    found = danger_in(part.argv)
    if found is None and (hides or not part.argv):
        found = danger_mentioned(line.text)
    if found is None and part.piped and part.argv and _runs_input(program(part.argv)):
        before = [each.argv for each in line.parts if each.argv]
        found = NETWORK if any(_fetches(argv) for argv in before) else None
    return found


def danger_mentioned(text: str) -> str | None:
    """What is dangerous about any command that a text names, whatever becomes of it."""
    # What lies in /etc is no program, and is known to `secret_path` where it matters.
    words = [word for word in mentions(text) if not word.startswith("/etc/") or secret_path(word)]
    found = next(filter(None, (danger_in(words[start:]) for start in range(len(words)))), None)
    if found is None and _fetches(words) and any(_runs_input(word) for word in words):
        return NETWORK
    return found


def danger_in(argv: Sequence[str]) -> str | None:
    """What is dangerous about one command, by its own words."""
    if not argv:
        return None
    name, arguments = os.path.basename(argv[0]) or argv[0], argv[1:]
    if name in _DELETING or name.startswith("mkfs"):
        return DELETES
    if name in _PRIVILEGED:
        return PRIVILEGES
    if name == "chmod" and any(_widens(each) for each in arguments):
        return PRIVILEGES
    if name == "find" and "-delete" in arguments:
        return DELETES
    if name == "truncate" or (name == "rsync" and any(each.startswith("--del") for each in arguments)):
        return DELETES
    if name == "kubectl" and "delete" in arguments:
        return DELETES
    if name in _ELSEWHERE:
        inner = (danger_in(arguments[start:]) for start in range(len(arguments)))
        return next(filter(None, inner), None)
    if name == "git":
        return _git(arguments)
    if any(secret_path(each) for each in arguments) or _reveals(name, arguments):
        return CREDENTIALS
    return None


def secret_path(word: str) -> bool:
    """Whether a word names, or as a pattern may name, a file that credentials are kept in."""
    if _CREDENTIAL.search(word) is not None:
        return True
    last = os.path.basename(word)
    if last.startswith((".", "id_")) and any(each in last for each in "*?["):
        return any(fnmatchcase(name, last) for name in _SECRET_NAMES)
    return False


def _widens(mode: str) -> bool:
    """Whether a mode of chmod sets the user or group on execution, or lets everybody write."""
    if re.fullmatch(r"[0-7]{3,5}", mode):
        return mode[-1] in "2367" or (len(mode) > 3 and mode[-4] in "24567")
    return re.search(r"[+=][rwxX]*[st]|(?:^|,)[ugo]*[oa][ugo]*[+=][rxX]*w|^\+[rx]*w", mode) is not None


def _reveals(name: str, arguments: Sequence[str]) -> bool:
    said = " ".join(arguments)
    return any(said.startswith(each) or each in arguments for each in _REVEALING.get(name, ()))


def _fetches(words: Sequence[str]) -> bool:
    return any(os.path.basename(word) in _FETCHING for word in words)


def _runs_input(name: str) -> bool:
    """Whether a program may run what comes to it."""
    name = os.path.basename(name)
    return name in ALWAYS_CODE or name in WRAPPERS or name in ("source", ".", "eval") or is_interpreter(name)


def _git(arguments: Sequence[str]) -> str | None:
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in _GIT_OPTIONS_WITH_VALUE else 1 :]
    if not rest:
        return None
    command, rest = rest[0], rest[1:]
    if command == "clean" and not any(each in ("-n", "--dry-run") for each in rest):
        return DELETES
    check = _GIT.get(command)
    if check is not None and check(rest):
        return HISTORY
    return CREDENTIALS if command == "credential" or any(secret_path(each) for each in rest) else None


def _any_of(*wanted: str) -> _Check:
    return lambda rest: any(each in wanted for each in rest)


def _always(rest: Sequence[str]) -> bool:
    return True


def _pushes_over(rest: Sequence[str]) -> bool:
    return _PUSH.found_in(rest) is not None or any(each.startswith(("+", ":")) for each in rest)


_GIT: Final[Mapping[str, _Check]] = MappingProxyType(
    {
        "push": _pushes_over,
        "reset": _any_of("--hard", "--merge", "--keep"),
        "rebase": _always,
        "filter-branch": _always,
        "filter-repo": _always,
        "replace": _always,
        "commit": _any_of("--amend"),
        "branch": _any_of("-D", "-d", "--delete", "-f", "--force", "-M"),
        "tag": _any_of("-d", "--delete", "-f", "--force"),
        "checkout": _any_of("--", "-f", "--force", "."),
        "restore": _always,
        "switch": _any_of("-f", "--force", "--discard-changes", "-C"),
        "stash": _any_of("drop", "clear", "pop"),
        "reflog": _any_of("expire", "delete"),
        "gc": lambda rest: any(each.startswith("--prune") for each in rest),
        "prune": _always,
        "update-ref": _any_of("-d", "--stdin"),
        "worktree": _any_of("remove", "prune"),
    }
)
