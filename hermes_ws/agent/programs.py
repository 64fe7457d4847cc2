"""What is known of programs: which only read, which run other programs, and by which of their options.

Two uses. `problems_of` tells why a rule about a program's name does not cover this call of it: the call would run
something that the name does not tell. `reads_only` tells whether a call is known to change nothing, which is what the
default rules allow. A program that is in neither table has no problem and does not read only: it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType
from typing import Final, final

SYSTEM_DIRECTORIES: Final = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin")
"""Where a program with a path is the program of that name. Anywhere else it is a file that happens to be called so."""


def names(text: str) -> frozenset[str]:
    """A set of names, written with blanks between."""
    return frozenset(text.split())


@final
@dataclass(frozen=True, slots=True)
class Options:
    """Options by which a program does more: `letters` in a cluster, `long` ones also abbreviated, whole `words`."""

    letters: str = ""
    long: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def found_in(self, arguments: Iterable[str]) -> str | None:
        """The first argument that is, or may be, one of these."""
        for argument in arguments:
            if argument in self.words:
                return argument
            if argument.startswith("--"):
                name = argument.split("=", 1)[0]
                if len(name) > 2 and any(each.startswith(name) for each in self.long):
                    return argument
            elif argument.startswith("-") and any(letter in argument for letter in self.letters):
                return argument
        return None


STATEFUL: Final = names(
    "cd pushd popd eval source . exec command builtin alias unalias trap export set unset shopt declare typeset "
    "local readonly let read mapfile readarray enable hash umask ulimit return exit break continue shift getopts "
)
"""Built into the shell: they change what later commands on the line mean, or run what they are given."""

WRAPPERS: Final = names(
    "sudo doas su runuser env nice ionice nohup timeout stdbuf setsid xargs parallel watch script chroot unshare "
    "nsenter flock taskset chrt prlimit strace ltrace gdb busybox toybox entr npx bunx uvx pipx npm-exec expect "
    "dbus-run-session systemd-run at batch crontab "
)
"""They run another program, named in their arguments or their input."""

ALWAYS_CODE: Final = names(
    "sh bash dash ash zsh ksh mksh fish csh tcsh rbash awk gawk mawk nawk perl sed vi vim nvim view ex ed emacs "
    "tclsh osascript "
)
"""Their arguments are programs, or hold some."""

_INTERPRETERS: Final[Mapping[re.Pattern[str], Options]] = MappingProxyType(
    {
        re.compile(r"python[0-9.]*|pypy[0-9.]*"): Options("c"),
        re.compile(r"node|nodejs|bun|deno"): Options(
            "epri", ("--eval", "--print", "--require", "--import", "--loader"), ("eval", "repl")
        ),
        re.compile(r"ruby[0-9.]*"): Options("er"),
        re.compile(r"php[0-9.]*"): Options("rBREd", ("--run", "--process-begin", "--process-code", "--define")),
        re.compile(r"lua[0-9.]*|luajit"): Options("eli"),
        re.compile(r"Rscript|R|julia|ghc|ghci|runghc|groovy|jshell|scala"): Options("eE", ("--eval", "--expr")),
    }
)

_RUNNING: Final[Mapping[str, Options]] = MappingProxyType(
    {
        "find": Options(words=("-exec", "-execdir", "-ok", "-okdir")),
        "fd": Options("xX", ("--exec", "--exec-batch")),
        "fdfind": Options("xX", ("--exec", "--exec-batch")),
        "rg": Options("z", ("--pre", "--hostname-bin", "--search-zip")),
        "tar": Options(
            "IF",
            (
                "--to-command",
                "--use-compress-program",
                "--checkpoint-action",
                "--info-script",
                "--new-volume-script",
                "--rsh-command",
                "--rmt-command",
            ),
        ),
        "ssh": Options("oFJ"),
        "scp": Options("oFSJ"),
        "sftp": Options("oFSJbs"),
        "rsync": Options("e", ("--rsh", "--rsync-path")),
        "sort": Options(long=("--compress-program",)),
        "split": Options(long=("--filter",)),
        "file": Options("zZ", ("--uncompress", "--uncompress-noreport")),
        "man": Options("PHp", ("--pager", "--html", "--preprocessor")),
        "go": Options(words=("-exec", "-toolexec", "generate")),
        "make": Options("f", ("--eval", "--file", "--makefile")),
        "zip": Options("T", ("--unzip-command", "--test")),
    }
)

_GIT_GLOBAL: Final = frozenset({"--no-pager", "-P", "--no-optional-locks", "--version", "--help", "-h", "-v"})
_GIT_RUNS: Final = names("bisect submodule filter-branch difftool mergetool hook for-each-repo config maintenance")
_GIT_LONG: Final = Options(
    long=(
        "--ext-diff",
        "--textconv",
        "--exec",
        "--upload-pack",
        "--receive-pack",
        "--open-files-in-pager",
        "--extcmd",
        "--config",
        "--template",
        "--show-signature",
    )
)
_GIT_LETTERS: Final[Mapping[str, str]] = MappingProxyType({"clone": "cu", "rebase": "x", "grep": "O"})

_GIT_READS: Final = names("status log diff show ls-files rev-parse blame describe shortlog")
_GIT_WRITES: Final = Options(long=("--output", "--contents"))

_PLAIN_READERS: Final = names(
    "ls cat pwd echo head tail wc grep egrep fgrep which whoami id uname stat du df basename dirname realpath "
    "readlink cut tr nl seq sha256sum sha1sum sha512sum md5sum cksum cmp comm od strings hexdump true false nproc jq"
)

_PRINTF_ASSIGNS: Final = re.compile(r"%[^a-zA-Z%]*[a-z]*n")
"""bash's printf stores a count in the variable that it is given for `%n`."""

_READERS: Final[Mapping[str, Options]] = MappingProxyType(
    {
        **dict.fromkeys(_PLAIN_READERS, Options()),
        # `-v` assigns, and evaluates what the variable's index says.
        "printf": Options("v"),
        "date": Options("s", ("--set",)),
        "diff": Options("l", ("--paginate",)),
        "file": Options("C", ("--compile",)),
        "find": Options(words=("-delete", "-fprint", "-fprint0", "-fprintf", "-fls")),
        "rg": Options(),
        "uniq": Options(),
        "sort": Options("oT", ("--output", "--temporary-directory")),
        "tree": Options("oR", ("--output",)),
    }
)


def program(argv: Sequence[str]) -> str:
    """The name that rules know a program by: without its directory where that is one of the system's."""
    directory, slash, name = argv[0].rpartition("/")
    return name if slash and directory in SYSTEM_DIRECTORIES else argv[0]


def problems_of(argv: Sequence[str]) -> tuple[str, ...]:
    """Why the program's name does not tell what would run; nothing for most calls."""
    name, arguments = program(argv), argv[1:]
    if name in STATEFUL:
        return (f"{name} changes the shell itself",)
    if name in WRAPPERS:
        return (f"{name} runs another program",)
    if name in ALWAYS_CODE:
        return (f"{name} runs code",)
    for pattern, options in _INTERPRETERS.items():
        if pattern.fullmatch(name):
            return _interpreter(name, arguments, options)
    if name == "git":
        return _git(arguments)
    found = _RUNNING[name].found_in(_clustered(name, arguments)) if name in _RUNNING else None
    return (f"{name} runs programs by {found}",) if found is not None else ()


def reads_only(argv: Sequence[str]) -> bool:
    """Whether this call is known to change nothing. Ask `problems_of` first."""
    name, arguments = program(argv), argv[1:]
    if name == "git":
        command = next((each for each in arguments if not each.startswith("-")), "")
        return command in _GIT_READS and _GIT_WRITES.found_in(arguments) is None
    if name not in _READERS or _READERS[name].found_in(arguments) is not None:
        return False
    operands = [each for each in arguments if not each.startswith("-")]
    match name:
        case "uniq":
            return not operands  # The second one is written.
        case "date":
            return all(each.startswith("+") for each in operands)  # Any other sets the clock.
        case "printf":
            return not any(_PRINTF_ASSIGNS.search(each) for each in arguments)
        case _:
            return True


def is_interpreter(name: str) -> bool:
    """Whether a program runs code of a language that it is given."""
    return any(pattern.fullmatch(name) for pattern in _INTERPRETERS)


def any_option_reads(argv: Sequence[str]) -> bool:
    """Whether this program only reads whatever its options are, so that a file called like one changes nothing."""
    return program(argv) in _PLAIN_READERS


def _interpreter(name: str, arguments: Sequence[str], options: Options) -> tuple[str, ...]:
    before: list[str] = []
    for argument in arguments:
        if not argument.startswith("-") or argument == "-":
            break
        before.append(argument)
        if argument == "-m":
            return ()  # A module is a program with a name, like a script.
    script = arguments[len(before)] if len(before) < len(arguments) else "-"
    if script == "-" or script in options.words or options.found_in(before) is not None:
        return (f"{name} runs code",)
    return ()


def _git(arguments: Sequence[str]) -> tuple[str, ...]:
    options = list(takewhile(lambda each: each.startswith("-"), arguments))
    strange = next((each for each in options if each not in _GIT_GLOBAL), None)
    if strange is not None:
        return (f"git runs programs by {strange}, or in another repository",)
    if len(options) == len(arguments):
        return ()
    command, rest = arguments[len(options)], arguments[len(options) + 1 :]
    if command in _GIT_RUNS:
        return (f"git {command} runs programs",)
    found = _GIT_LONG.found_in(rest) or Options(_GIT_LETTERS.get(command, "")).found_in(rest)
    return (f"git runs programs by {found}",) if found is not None else ()


def _clustered(name: str, arguments: Sequence[str]) -> Sequence[str]:
    """tar's first argument is a cluster of options also without its dash."""
    if name == "tar" and arguments and not arguments[0].startswith("-"):
        return (f"-{arguments[0]}", *arguments[1:])
    return arguments
