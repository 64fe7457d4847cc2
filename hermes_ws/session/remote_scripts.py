"""What a shell elsewhere is asked to do, as POSIX scripts, and reading what they print, as from a stranger."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from hermes_ws.contract import errors
from hermes_ws.warden.grants import Entry, Found, Listed, Looking, Match

READER: Final = 'IFS= read -r n && s=$(dd bs=1 count="$n" 2>/dev/null; echo x) && eval "${s%x}"'
"""Takes a script from standard input and not a byte more: what follows belongs to the script."""

NO_DIRECTORY: Final = 121
NO_FILE: Final = 122
NOT_ALLOWED: Final = 123
NO_REGULAR_FILE: Final = 124
NO_EXPRESSION: Final = 120
"""Exit codes of ours, between those of programs and those of shells."""

HEAD_BYTES: Final = 4096
"""The first line of an answer, and what a careless login script prints before it."""

LINE_CHARACTERS: Final = 400
NAME_CHARACTERS: Final = 4096

_KINDS: Final[Mapping[str, Literal["file", "directory", "link", "other"]]] = MappingProxyType(
    {"f": "file", "d": "directory", "l": "link"}
)

_SKIPPED: Final = (".git", ".hg", ".svn", "node_modules", "__pycache__")
"""Directories that a search leaves out: they hold what others made, and much of it."""

_WATCHED: Final = """
exec 3<&0
s=; command -v setsid >/dev/null 2>&1 && s=setsid
$s "$@" </dev/null 3<&- & p=$!
( cat <&3 >/dev/null 2>&1
  kill -TERM -$p 2>/dev/null || kill -TERM $p
  sleep 1; kill -KILL -$p 2>/dev/null || kill -KILL $p ) >/dev/null 2>&1 & w=$!
exec 3<&-
wait $p; r=$?
kill $w 2>/dev/null
exit $r
"""
"""Runs "$@" and ends it, with its process group, when standard input comes to an end."""

_FOLLOWED: Final = """
s=; command -v setsid >/dev/null 2>&1 && s=setsid
( while kill -0 $PPID 2>/dev/null; do sleep 2; done
  kill -TERM -$$ 2>/dev/null; sleep 1; kill -KILL -$$ ) >/dev/null 2>&1 </dev/null &
exec "$@"
"""
"""Becomes "$@", which keeps its input, and is ended when the connection is gone."""


ENDING: Final = """exec 2>/dev/null
p=$(cat "$1") && [ "$p" -gt 1 ] || exit 0
rm -f -- "$1"
kill -TERM -$p || kill -TERM $p
sleep 1
kill -KILL -$p || kill -KILL $p
"""
"""Ends the program whose number stands in the file "$1", with its process group."""


def spoken(script: str) -> bytes:
    """The script as `READER` takes it."""
    data = script.encode("utf-8", "surrogateescape")
    return f"{len(data)}\n".encode() + data


def quoted(path: Path) -> str:
    """A path for a script; `~` is the home over there."""
    if path.parts[:1] == ("~",):
        rest = "/".join(path.parts[1:])
        return f'"$HOME"/{shlex.quote(rest)}' if rest else '"$HOME"'
    return shlex.quote(str(path))


def _begin(directory: Path, env: Mapping[str, str]) -> str:
    lines = [f"cd -- {quoted(directory)} 2>/dev/null || exit {NO_DIRECTORY}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return "\n".join(lines)


def command(line: str, directory: Path, env: Mapping[str, str], *, lines: int = 0) -> str:
    """Run a command line to its end, or to that of the input. Its own input are the first `lines` of that, 0 or 1."""
    watched = _WATCHED
    if lines:
        watched = "IFS= read -r i\n" + watched.replace('$s "$@" </dev/null', 'printf \'%s\\n\' "$i" | $s "$@"')
    shell = "c=/bin/sh; command -v bash >/dev/null 2>&1 && c=bash"
    return f'{_begin(directory, env)}\n{shell}\nset -- "$c" -c {shlex.quote(line)}\n{watched}'


def program(
    argv: Sequence[str], directory: Path, env: Mapping[str, str], *, followed: bool = False, mark: str | None = None
) -> str:
    """Become a program that goes on. Its number is put into the file `mark`, for `ENDING`."""
    words = " ".join(shlex.quote(word) for word in argv)
    begin = _begin(directory, env)
    if mark is not None:
        begin += f"\n(umask 077; printf %s $$ >{shlex.quote(mark)}) 2>/dev/null"
    return f"{begin}\nset -- {words}\n" + (_FOLLOWED if followed else 'exec "$@"\n')


def kept(script: str) -> str:
    """Put a script into a file that only its user reads, and print where: a terminal is no place to say it."""
    content = shlex.quote(f'rm -f -- "$0"\n{script}')
    return f'umask 077; f=$(mktemp) && printf %s {content} >"$f" && printf %s "$f"\n'


def read(path: Path, offset: int, limit: int) -> str:
    """Print the size, then the bytes asked for."""
    place = quoted(path)
    return f"""exec 2>/dev/null
{_must_be_file(place)}
wc -c <{place} | tr -d ' ' || exit {NOT_ALLOWED}
tail -c +{offset + 1} <{place} | head -c {limit}
exit 0
"""


def write(path: Path, size: int) -> str:
    """Replace a file with what follows on the input. Says whether it was made."""
    place = quoted(path)
    return f"""exec 2>/dev/null
p={place}
[ -d "$p" ] && exit {NO_REGULAR_FILE}
d=$(dirname -- "$p"); mkdir -p -- "$d" || exit {NOT_ALLOWED}
[ -L "$p" ] && command -v readlink >/dev/null && p=$(readlink -f -- "$p") && d=$(dirname -- "$p")
t="$d/.$$.tmp"; m=created; [ -e "$p" ] && m=replaced && cp -p -- "$p" "$t"
dd bs=65536 iflag=fullblock,count_bytes count={size} >"$t" 2>/dev/null || head -c {size} >"$t" || exit {NOT_ALLOWED}
[ "$(wc -c <"$t" | tr -d ' ')" = {size} ] || {{ rm -f -- "$t"; exit {NOT_ALLOWED}; }}
mv -f -- "$t" "$p" || {{ rm -f -- "$t"; exit {NOT_ALLOWED}; }}
echo $m
"""


def listing(path: Path, depth: int, *, hidden: bool) -> str:
    """Print kind, size and name of each entry, each ended by a zero byte."""
    names = "" if hidden else " -name '.*' -prune -o"
    return f"""exec 2>/dev/null
cd -- {quoted(path)} || {{ [ -e {quoted(path)} ] && exit {NOT_ALLOWED}; exit {NO_FILE}; }}
if find . -maxdepth 0 -printf '' >/dev/null; then
  find . -mindepth 1 -maxdepth {depth}{names} -printf '%y %s %P\\0'
else
  find . -mindepth 1 -maxdepth {depth}{names} -exec /bin/sh -c 'for f; do
    t=o; [ -f "$f" ] && t=f; [ -d "$f" ] && t=d; [ -L "$f" ] && t=l
    s=0; [ $t = f ] && s=$(wc -c <"$f" | tr -d " ")
    printf "%s %s %s\\0" "$t" "${{s:-0}}" "${{f#./}}"; done' sh {{}} +
fi
exit 0
"""


def search(path: Path, what: Looking) -> str:
    """Print name, number and text of each line that fits."""
    options = "-rnHIZ" if what.pattern is None else f"-rnHIZ --include={shlex.quote(what.pattern)}"
    named = "" if what.pattern is None else f" -name {shlex.quote(what.pattern)}"
    kind = "F" if what.literal else "E"
    case = "i" if what.ignore_case else ""
    skipped = " ".join(f"--exclude-dir={name}" for name in _SKIPPED)
    pruned = " -o ".join(f"-name {name}" for name in _SKIPPED)
    # The second way is for busybox, whose grep neither skips binary files nor ends names by a zero byte.
    return f"""exec 2>/dev/null
cd -- {quoted(path)} 2>/dev/null && p=. || {{ p={quoted(path)}; [ -r "$p" ] || exit {NO_FILE}; }}
e={shlex.quote(what.expression)}
if printf 'x\n' | grep -HIZ x >/dev/null; then
  grep {options} -{kind}{case} {skipped} -e "$e" -- "$p"
else
  find "$p" -type d \\( {pruned} \\) -prune -o -type f{named} -exec /bin/sh -c 'e=$1; shift; for f; do
    [ "$(head -c 8192 <"$f" | tr -dc "\\000" | wc -c)" -eq 0 ] || continue
    grep -n{kind}{case} -e "$e" -- "$f" | while IFS= read -r l; do printf "%s\\0%s\\n" "$f" "$l"; done
  done' sh "$e" {{}} +
fi | head -n {what.limit + 1}
printf x | grep -{kind}{case} -e {shlex.quote(what.expression)} >/dev/null; [ $? -gt 1 ] && exit {NO_EXPRESSION}
exit 0
"""


def problem(code: int | None, path: Path) -> errors.HermesError:
    """What an exit code of a file script stands for."""
    place = str(path)
    if code in (NO_FILE, NO_DIRECTORY):
        return errors.NotFound(f"{place} does not exist over there.", path=place)
    if code == NOT_ALLOWED:
        return errors.PermissionDenied(f"{place} may not be used over there.", path=place)
    if code == NO_REGULAR_FILE:
        return errors.InvalidParams(f"{place} is no regular file.", path=place)
    if code == NO_EXPRESSION:
        return errors.InvalidParams("The expression cannot be searched for.")
    return errors.FileFailed(f"{place} could not be used over there.", path=place)


def read_listing(told: bytes, limit: int, pattern: str | None) -> Listed:
    """The entries that `listing` printed, sorted; a line that fits no entry is passed over."""
    entries: list[Entry] = []
    for line in told.split(b"\0"):
        kind, _, rest = line.decode("utf-8", "replace").partition(" ")
        size, _, name = rest.partition(" ")
        if not name or not size.isdigit() or len(size) > 20:
            continue
        if (
            pattern is None
            or fnmatch.fnmatchcase(name.rsplit("/", 1)[-1], pattern)
            or fnmatch.fnmatchcase(name, pattern)
        ):
            entries.append(Entry(name[:NAME_CHARACTERS], _KINDS.get(kind[-1:], "other"), int(size)))
    entries.sort(key=lambda entry: entry.name.split("/"))
    return Listed(tuple(entries[:limit]), len(entries) > limit)


def read_search(told: bytes, what: Looking) -> Found:
    """The lines that `search` printed."""
    matches: list[Match] = []
    for line in told.split(b"\n"):
        name, zero, rest = line.partition(b"\0")
        number, _, text = rest.partition(b":")
        if zero and number.isdigit() and len(number) <= 20:
            shown = name.decode("utf-8", "replace").removeprefix("./")[:NAME_CHARACTERS]
            matches.append(Match(shown, int(number), text.decode("utf-8", "replace")[:LINE_CHARACTERS]))
    return Found(tuple(matches[: what.limit]), len(matches) > what.limit)


def _must_be_file(place: str) -> str:
    return (
        f"[ -e {place} ] || exit {NO_FILE}; [ -f {place} ] || exit {NO_REGULAR_FILE};"
        f" [ -r {place} ] || exit {NOT_ALLOWED}"
    )
