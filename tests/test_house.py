"""The house: which room may know which, how long a file may be, and what stands in no file.

Each rule reads the source as a tree, so that a comment or a string never trips it, and says what it is for.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hermes_ws"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py"))
TESTED = sorted((*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")))

FLOORS = {
    "contract": 0, "scope": 0, "wire": 0,
    "agent": 1, "journal": 1, "warden": 1,
    "session": 2,
    "hosting": 3,
    "methods": 4,
    "server": 5,
    "cli": 6,
}  # fmt: skip

LONG_FILES: dict[str, str] = {
    "contract/errors.py": "one tree: whoever adds an error sees all there are, and that no two mean the same",
}
"""Files of 401 to 600 lines, each with the reason why it reads better whole."""

PROCESS_STARTERS = {"warden/hands.py", "client/ensure.py", "cli/alone.py", "cli/editor.py"}
"""Where a process may be started in the server or a client; all others ask one of these."""

ENVIRONMENT_READERS = {
    "server/serve.py": "reads the environment once, then executes itself with the base names alone",
    "cli/environment.py": "a command line is told by its terminal which home it means",
    "warden/__main__.py": "the confined child empties what it was started with",
}

RAW_THREADS = {"journal/database.py", "journal/writer.py", "server/watchdog.py"}
"""Where a thread of our own is started; it gets its owner's context by hand."""

BELOW_A_DESCRIPTOR = {
    "hosting/profile_copy.py": "copies what a command may change meanwhile: every level is opened through no link",
}
"""Where a path is taken from an open directory. No audit event tells which, so that the guard cannot judge it."""

DATABASE_OPENERS = {"journal", "hosting"}
"""Rooms that open SQLite."""


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def may_import(source: str, target: str, module: str) -> bool:
    if source == target or target == "":
        return True
    if source == "client":
        return target in {"contract", "wire"} or module.startswith("hermes_ws.scope.home")
    if target == "client":
        return source == "cli"
    if FLOORS[source] == 0:
        return target == "contract" and source in {"scope", "wire"}
    return FLOORS[target] < FLOORS[source]


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_arrows_go_down(path: Path) -> None:
    wrong = []
    for line, module in imports(path):
        if module.startswith("hermes_ws.") and module.count(".") >= 1:
            target = module.split(".")[1]
            if target in FLOORS or target == "client":
                source = room(path)
                if source and not may_import(source, target, module):
                    wrong.append(f"{place(path)}:{line} knows {module}, which is not below {source}/")
    assert not wrong, "\n".join(wrong) + "\nState what is needed as a Protocol in ports.py and be given it from above."


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_a_file_is_short_enough_to_read(path: Path) -> None:
    lines = len(path.read_text("utf-8").splitlines())
    if place(path) in LONG_FILES:
        assert 400 < lines <= 600, "take it off the list, or split it"
    else:
        assert lines <= 400, "split it, or list it with the reason why it reads better whole"


def test_tests_measurements_and_pages_are_short_enough_too() -> None:
    files = [each for part in ("tests", "bench", "docs") for each in (ROOT / part).rglob("*.py")]
    files += (ROOT / "hermes_ws" / "dashboard").glob("*.js")
    lengths = {each.relative_to(ROOT).as_posix(): len(each.read_text("utf-8").splitlines()) for each in files}
    assert {name for name, lines in lengths.items() if lines > 400} == {
        "hermes_ws/dashboard/texts.js",  # every word of the page, so that it can be read in another language
    }


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    text = ast.get_docstring(tree(path))
    assert text, "a module begins with a sentence on its purpose"


def test_no_name_says_nothing() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "base2", "stuff"}
    assert [place(path) for path in SOURCES if path.stem in empty] == []


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_nothing_reads_the_process_environment(path: Path) -> None:
    found = [
        f"{place(path)}:{node.lineno}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and dotted(node) in {"os.environ", "os.environb", "os.getenv", "os.putenv", "os.unsetenv", "Path.home"}
    ]
    if place(path) not in ENVIRONMENT_READERS:
        assert not found, f"{found}: what a profile needs is in its bound scope"


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_processes_start_in_three_places(path: Path) -> None:
    starters = {
        "subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
        "os.fork", "os.forkpty", "os.system", "os.popen", "os.posix_spawn", "os.posix_spawnp",
        "trio.run_process", "trio.lowlevel.open_process", "anyio.run_process", "anyio.open_process",
    }  # fmt: skip
    found = [
        f"{place(path)}:{node.lineno} {dotted(node.func)}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and dotted(node.func) in starters
    ]
    child_side = place(path).startswith("warden/") and place(path) != "warden/hands.py"
    if place(path) not in PROCESS_STARTERS and not child_side:
        assert not found, f"{found}: the warden starts what a profile runs"


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_threads_carry_a_scope(path: Path) -> None:
    found = [
        f"{place(path)}:{node.lineno} {dotted(node.func)}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and dotted(node.func)
        in {
            "threading.Thread",
            "threading.Timer",
            "concurrent.futures.ThreadPoolExecutor",
            "ThreadPoolExecutor",
            "trio.to_thread.run_sync",
            "anyio.to_thread.run_sync",
        }
    ]
    hops = {"scope/current.py"}
    if place(path) not in RAW_THREADS | hops and room(path) != "client":
        assert not found, f"{found}: use scope.current.in_thread, which carries the scope and is bounded per profile"


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_sqlite_is_opened_where_the_journal_lives(path: Path) -> None:
    found = [
        f"{place(path)}:{node.lineno}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and dotted(node.func) in {"sqlite3.connect", "sqlite3.Connection"}
    ]
    if room(path) not in DATABASE_OPENERS:
        assert not found
    words = [
        f"{place(path)}:{node.lineno}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.lstrip().upper().startswith(("ATTACH ", "VACUUM INTO"))
    ]
    assert not words, f"{words}: no audit event tells of it"


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_the_guard_sees_which_path_is_meant(path: Path) -> None:
    words = {"dir_fd", "src_dir_fd", "dst_dir_fd"}
    found = [
        f"{place(path)}:{node.lineno}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and (dotted(node.func) == "os.fwalk" or words & {keyword.arg for keyword in node.keywords})
    ]
    if place(path) in BELOW_A_DESCRIPTOR:
        assert found, "take it off the list"
    else:
        assert not found, f"{found}: no audit event tells of it"


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_no_module_keeps_state(path: Path) -> None:
    """A cache at module level is shared by all profiles; whatever is kept hangs on a runtime and dies with it."""
    kinds = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    makers = {"dict", "list", "set", "defaultdict", "deque", "Counter", "OrderedDict", "WeakValueDictionary", "WeakSet"}
    found = []
    for node in tree(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if [dotted(each) for each in targets] == ["__all__"]:
                continue
            value = node.value
            made = isinstance(value, ast.Call) and dotted(value.func).rsplit(".", 1)[-1] in makers
            if isinstance(value, kinds) or made:
                found.append(f"{place(path)}:{node.lineno}")
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Global):
            found.append(f"{place(path)}:{node.lineno} global {', '.join(node.names)}")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                name = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
                if name.rsplit(".", 1)[-1] in {"cache", "lru_cache"}:
                    found.append(f"{place(path)}:{node.lineno} @{name}")
    assert not found, f"{found}: keep it on the runtime, or make it a tuple, frozenset or MappingProxyType"


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_the_process_directory_is_never_changed_or_asked(path: Path) -> None:
    found = [
        f"{place(path)}:{node.lineno}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and dotted(node.func) in {"os.chdir", "os.fchdir", "os.getcwd", "Path.cwd", "pathlib.Path.cwd"}
    ]
    if not place(path).startswith(("warden/", "cli/")):
        assert not found, f"{found}: a directory belongs to a session, not to the process"


@pytest.mark.parametrize("path", SOURCES, ids=place)
def test_pure_rooms_do_no_input_or_output(path: Path) -> None:
    if room(path) not in {"contract", "wire"}:
        return
    banned = {"os", "socket", "sqlite3", "subprocess", "trio", "anyio", "asyncio", "pathlib", "threading", "httpx"}
    found = [f"{place(path)}:{line} {module}" for line, module in imports(path) if module.split(".")[0] in banned]
    assert not found, f"{found}: contract/ and wire/ are functions of values"


def test_the_child_stands_on_the_standard_library_alone() -> None:
    """The confined child starts with `-I -S`: there are no site-packages, and what it imports it imports before it
    confines itself."""
    reached = {PACKAGE / "warden" / "__main__.py"}
    waiting = list(reached)
    third_party = []
    while waiting:
        path = waiting.pop()
        for line, module in imports(path):
            if not module.startswith("hermes_ws"):
                if module.split(".")[0] in {"trio", "pydantic", "orjson", "anyio", "websockets", "httpx", "structlog"}:
                    third_party.append(f"{place(path)}:{line} {module}")
                continue
            candidate = ROOT / (module.replace(".", "/") + ".py")
            if candidate.exists() and candidate not in reached:
                reached.add(candidate)
                waiting.append(candidate)
    assert third_party == []


@pytest.mark.parametrize("path", TESTED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_left_for_later_in_the_code(path: Path) -> None:
    words = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    lines = [
        number for number, line in enumerate(path.read_text("utf-8").splitlines(), 1) if any(w in line for w in words)
    ]
    assert lines == [], "do it, or write it down where the work is planned"
