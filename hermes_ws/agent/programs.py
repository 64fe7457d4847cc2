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
    """Options by which a program does more: `letters` in a cluster, `long` ones also abbreviated, whole `words`.

    `starts` are beginnings of arguments.
    """

    letters: str = ""
    long: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()

    def found_in(self, arguments: Iterable[str]) -> str | None:
        """The first argument that is, or may be, one of these."""
        for argument in arguments:
            if argument in self.words or argument.startswith(self.starts):
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
    "bind complete compgen compopt fc history jobs wait dirs disown logout suspend "
)
"""Built into the shell: they change what later commands on the line mean, or run what they are given."""

WRAPPERS: Final = names(
    "sudo doas su runuser env nice ionice nohup timeout stdbuf setsid xargs parallel watch script chroot unshare "
    "nsenter flock taskset chrt prlimit strace ltrace gdb busybox toybox entr npx bunx uvx pipx npm-exec expect "
    "dbus-run-session systemd-run at batch crontab setpriv setarch linux32 linux64 runcon newgrp sg capsh gosu su-exec "
    "setuidgid chpst envdir softlimit execlineb time perf valgrind rr lldb gdbserver ld.so catchsegv unbuffer rlwrap "
    "screen tmux dtach abduco tsp nodemon hyperfine ccache distcc sccache bear scan-build xvfb-run fakeroot fakechroot "
    "eatmydata proxychains proxychains4 torsocks tsocks cgexec firejail bwrap run-parts start-stop-daemon daemonize "
    "logsave choom uclampset numactl chronic ifne mispipe lckdo sem direnv nix-shell systemd-nspawn machinectl socat "
    "coreutils ssh-agent dbus-launch flatpak-spawn run0 uidmap unexec prime-run gamemoderun caffeinate "
)
"""They run another program, named in their arguments or their input."""

ALWAYS_CODE: Final = names(
    "sh bash dash ash zsh ksh mksh fish csh tcsh rbash yash pwsh powershell nu xonsh elvish awk gawk mawk nawk "
    "original-awk perl sed gsed vi vim nvim view vimdiff rvim gvim ex ed red emacs emacsclient pico micro kak hx "
    "tclsh wish osascript m4 dc gnuplot irb pry octave maxima sage gap sbcl clisp guile racket elixir iex erl escript "
    "swipl ocaml coqtop clojure jrunscript kotlinc nix-instantiate psysh sqlite3 psql mysql mariadb duckdb mongosh "
    "redis-cli ftp lftp mutt ansible crash bpftrace stap "
)
"""Their arguments or their input are programs, or hold some."""

_CODE_MODULES: Final = names("timeit pdb code codeop runpy trace profile cProfile doctest idlelib IPython")
"""Modules of Python that run the code, or the program, that they are given."""


@final
@dataclass(frozen=True, slots=True)
class _Interpreter:
    """How a language's program may be called so that it is a script's name that tells what runs.

    `harmless` fits options that may stand before the script: none that take a word, since what follows is not the
    script then. `verbs` are first words that run what follows them.
    """

    names: re.Pattern[str]
    harmless: re.Pattern[str] | None = None
    verbs: frozenset[str] = frozenset()


_INTERPRETERS: Final = (
    _Interpreter(re.compile(r"python[0-9.]*|pypy[0-9.]*"), re.compile(r"-[bBdEIOPqsSuv]+")),
    _Interpreter(re.compile(r"node|nodejs|bun|deno"), verbs=names("eval repl x exec")),
    _Interpreter(re.compile(r"ruby[0-9.]*|jruby"), re.compile(r"-w")),
    _Interpreter(re.compile(r"php[0-9.]*|lua[0-9.]*|luajit")),
    _Interpreter(re.compile(r"Rscript|R|julia|ghc|ghci|runghc|groovy|jshell|scala")),
)

_FROM_ELSEWHERE: Final = re.compile(r"-$|/dev/|/proc/|[a-z]+://")
"""A script that is no file: the input, or an address."""

_LOADER: Final = re.compile(r"(?:.*/)?(?:ld(?:64)?\.so|ld-(?:linux|musl)|ld-[0-9.]+\.so)[^/]*")
"""The program that starts programs."""

_COMPILING: Final = Options("B", starts=("-wrapper", "-specs", "--specs", "-fplugin", "@"))

_RUNNING: Final[Mapping[str, Options]] = MappingProxyType(
    {
        # What writes to a file that it is told is a redirection by another name.
        "find": Options(words=("-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls")),
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
        "sort": Options("o", ("--compress-program", "--output")),
        "split": Options(long=("--filter",)),
        "file": Options("zZ", ("--uncompress", "--uncompress-noreport")),
        "man": Options("PHp", ("--pager", "--html", "--preprocessor")),
        "go": Options(words=("-exec", "-toolexec", "generate")),
        "make": Options("f", ("--eval", "--file", "--makefile")),
        "zip": Options("T", ("--unzip-command", "--test")),
        "ag": Options(long=("--pager",)),
        "ack": Options(long=("--pager", "--output")),
        "bat": Options(long=("--pager", "--config-file")),
        "batcat": Options(long=("--pager", "--config-file")),
        "diff": Options("l", ("--paginate",)),
        "sdiff": Options("o", ("--diff-program", "--output")),
        "diff3": Options(long=("--diff-program",)),
        "more": Options(starts=("+",)),
        "less": Options(
            "koOK",
            starts=("+",),
            long=("--lesskey-file", "--lesskey-src", "--lesskey-content", "--log-file", "--LOG-FILE"),
        ),
        "nano": Options("sT", ("--speller", "--operatingdir", "--rcfile")),
        "nc": Options("ec", ("--exec", "--sh-exec", "--lua-exec")),
        "ncat": Options("ec", ("--exec", "--sh-exec", "--lua-exec")),
        "netcat": Options("ec", ("--exec", "--sh-exec", "--lua-exec")),
        "wget": Options("e", ("--execute", "--use-askpass", "--config")),
        "curl": Options("K", ("--config",)),
        "tcpdump": Options("z"),
        "pandoc": Options("F", ("--filter", "--lua-filter", "--pdf-engine", "--defaults")),
        "tree": Options("o"),
        # In bash `-v` evaluates the index of a variable's name, and printf's assigns besides.
        "test": Options("vR"),
        "[": Options("vR"),
        "printf": Options("v"),
        **dict.fromkeys(
            names("gcc g++ cc c++ clang clang++"),
            Options("B", starts=("-wrapper", "-specs", "--specs", "-fplugin", "@")),
        ),
        **dict.fromkeys(
            names("tex latex pdftex pdflatex xelatex lualatex"), Options(words=("--shell-escape", "-shell-escape"))
        ),
    }
)

_GIT_GLOBAL: Final = frozenset({"--no-pager", "-P", "--no-optional-locks", "--version", "-v"})
_GIT_RUNS: Final = names(
    "bisect submodule filter-branch difftool mergetool hook for-each-repo config maintenance send-email imap-send "
    "instaweb web--browse daemon shell gui citool p4 svn help interpret-trailers upload-pack receive-pack remote-ext "
    "remote-fd upload-archive credential alias merge-index"
)
_GIT_COMMANDS: Final = _GIT_RUNS | names(
    "add am annotate apply archive blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format "
    "checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree count-objects "
    "describe diff diff-files diff-index diff-tree fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref "
    "format-patch fsck gc get-tar-commit-id grep hash-object index-pack init log ls-files ls-remote ls-tree mailinfo "
    "mailsplit merge merge-base merge-file merge-tree mktag mktree multi-pack-index mv name-rev notes "
    "pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase reflog "
    "remote repack replace rerere reset restore rev-list rev-parse revert rm send-pack shortlog show show-branch "
    "show-index show-ref sparse-checkout stage stash status stripspace switch symbolic-ref tag unpack-file "
    "unpack-objects update-index update-ref update-server-info var verify-commit verify-pack verify-tag version "
    "whatchanged worktree write-tree filter-repo"
)
"""Built into git, so that no alias can take their names (`git help -a`)."""

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
        "--output",
    )
)
_WRITERS: Final = names("sort tree sdiff find git less")
_TO_FILE: Final = re.compile(r"--out|-fprint|-fls|-[a-zA-Z]*o(?!k)")
"""How those options of these programs begin that have a file written."""

_GIT_ARGUMENT: Final = re.compile(r"ext::|fd::|%G|^--(?:upload-archive|sendmail-cmd|help)")
"""In an argument of git: a transport that is a program, a signature that a program checks, a page that one shows."""

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


_LISTED: Final = ("--files0-from", "--files-from", "--check")
_FOLLOWING: Final[Mapping[str, Options]] = MappingProxyType(
    {
        **dict.fromkeys(names("grep egrep fgrep"), Options("R", ("--dereference-recursive",))),
        **dict.fromkeys(names("wc sort"), Options(long=_LISTED)),
        **dict.fromkeys(names("sha256sum sha1sum sha512sum md5sum cksum"), Options("c", _LISTED)),
        "rg": Options("L", ("--follow",)),
        "find": Options(words=("-L", "-follow", "-files0-from")),
        "du": Options("LD", ("--dereference", *_LISTED)),
        "tree": Options("l"),
        "ls": Options("LH", ("--dereference",)),
        "diff": Options("r", ("--recursive",)),
        "file": Options("fm", (*_LISTED, "--magic-file")),
        "strings": Options(starts=("@",)),
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
    if _LOADER.fullmatch(name):
        return (f"{name} runs another program",)
    for each in _INTERPRETERS:
        if each.names.fullmatch(name):
            return _interpreter(name, arguments, each)
    if name == "git":
        return _git(arguments)
    found = _RUNNING[name].found_in(_clustered(name, arguments)) if name in _RUNNING else None
    return () if found is None else (_does_more(name, found),)


def _does_more(name: str, option: str) -> str:
    does = "writes to a file" if name in _WRITERS and _TO_FILE.match(option) else "runs programs"
    return f"{name} {does} by {option}"


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


def follows_links(argv: Sequence[str]) -> bool:
    """Whether a reading program is told to go where links lead, or to read files that another file lists."""
    found = _FOLLOWING.get(program(argv))
    return found is not None and found.found_in(argv[1:]) is not None


def is_interpreter(name: str) -> bool:
    """Whether a program runs code of a language that it is given."""
    return any(each.names.fullmatch(name) for each in _INTERPRETERS)


def any_option_reads(argv: Sequence[str]) -> bool:
    """Whether this program only reads whatever its options are, so that a file called like one changes nothing."""
    return program(argv) in _PLAIN_READERS


def _interpreter(name: str, arguments: Sequence[str], interpreter: _Interpreter) -> tuple[str, ...]:
    rest = list(arguments)
    while rest and interpreter.harmless is not None and interpreter.harmless.fullmatch(rest[0]):
        rest = rest[1:]
    if rest[:1] == ["-m"] and name.startswith("py"):
        # A module is a program with a name, like a script.
        return (f"{name} runs code",) if not rest[1:] or rest[1] in _CODE_MODULES else ()
    script = next(iter(rest), "-")
    told = not script.startswith("-") and script not in interpreter.verbs
    if not told or any(_FROM_ELSEWHERE.match(each) for each in rest[:2]):
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
    if command not in _GIT_COMMANDS:
        return (f"git {command} may be an alias, or a program of that name",)
    if command in _GIT_RUNS:
        return (f"git {command} runs programs",)
    found = _GIT_LONG.found_in(rest) or Options(_GIT_LETTERS.get(command, "")).found_in(rest)
    found = found or next((each for each in rest if _GIT_ARGUMENT.search(each)), None)
    return () if found is None else (_does_more("git", found),)


def _clustered(name: str, arguments: Sequence[str]) -> Sequence[str]:
    """tar's first argument is a cluster of options also without its dash."""
    if name == "tar" and arguments and not arguments[0].startswith("-"):
        return (f"-{arguments[0]}", *arguments[1:])
    return arguments
