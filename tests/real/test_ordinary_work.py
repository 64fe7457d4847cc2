"""What people's tools do all day goes on inside, with namespaces and without: real programs, nothing simulated."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from hermes_ws.agent.deeds import Ran
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.session.hands import SessionHands
from hermes_ws.warden import bubblewrap
from tests.real.conftest import SshServer
from tests.session.house import House

PATH = "/usr/local/bin:/usr/bin:/bin"


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name, path=PATH) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}")


@pytest.fixture(params=["namespaces", "without"])
def namespaces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "without":
        monkeypatch.setattr(bubblewrap, "find", lambda: None)
    elif bubblewrap.find() is None:
        pytest.skip("bubblewrap is not installed")
    return request.param == "namespaces"


@pytest.fixture
async def runtime(tmp_path: Path, namespaces: bool, ssh_server: SshServer) -> AsyncIterator[ProfileRuntime]:
    root = tmp_path / "homes"
    root.mkdir()
    house = House(root)
    house.home("default", config=f"terminal:\n  ssh: [{ssh_server.user_key}]\n  deadline_s: 300\n")
    async with house.served():
        yield await house.runtime()


async def run(runtime: ProfileRuntime, script: str) -> Ran:
    hands = SessionHands(runtime, runtime.scope, runtime.home.user)
    return await hands.run(f"set -e\n{script}", cwd=None, deadline_s=300, on_output=lambda _text: None)


@needs("git", "ssh")
async def test_git_commits_and_clones_over_ssh_with_the_profiles_key_and_known_hosts(
    runtime: ProfileRuntime, ssh_server: SshServer, tmp_path: Path
) -> None:
    bare = tmp_path / "far.git"
    await trio.run_process(["git", "init", "-q", "--bare", "-b", "main", str(bare)])
    url = f"ssh://root@127.0.0.1:{ssh_server.port}{bare}"
    refused = await run(runtime, f"git clone -q {url} x")
    assert "Host key verification failed" in refused.output
    own = runtime.home.user / ".ssh"
    own.mkdir(mode=0o700, exist_ok=True)
    (own / "known_hosts").write_text(ssh_server.known_hosts)
    done = await run(
        runtime,
        "git init -q -b main one; cd one; git config user.name A; git config user.email a@b.invalid\n"
        "echo words > file; git add .; git commit -q -m first\n"
        f"git push -q {url} main; cd ..; git clone -q {url} two; cat two/file; git -C two log --format=%s",
    )
    assert done.output.splitlines()[-2:] == ["words", "first"]


async def test_venv_pip_and_process_pools(runtime: ProfileRuntime, namespaces: bool, tmp_path: Path) -> None:
    package = runtime.home.user / "small"
    package.mkdir()
    (package / "pyproject.toml").write_text(
        '[project]\nname = "small"\nversion = "1"\n[build-system]\nrequires = []\nbuild-backend = "back"\n'
        'backend-path = ["."]\n'
    )
    (package / "back.py").write_text(
        "import zipfile\n"
        "def build_wheel(directory, *_, **__):\n"
        "    name = 'small-1-py3-none-any.whl'\n"
        "    with zipfile.ZipFile(f'{directory}/{name}', 'w') as wheel:\n"
        "        wheel.writestr('small.py', 'WORD = \"installed\"\\n')\n"
        "        wheel.writestr('small-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n')\n"
        "        wheel.writestr('small-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n')\n"
        "        wheel.writestr('small-1.dist-info/RECORD', '')\n"
        "    return name\n"
    )
    done = await run(
        runtime,
        f"{sys.executable} -m venv env; env/bin/python -m pip install -q --no-index --no-build-isolation"
        " --disable-pip-version-check ./small; env/bin/python -c 'import small; print(small.WORD)'",
    )
    assert done.output.splitlines()[-1] == "installed", done.output
    pool = "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
    ran = await run(runtime, f"{sys.executable} - <<'END'\n{pool}END\n")
    if namespaces:
        assert ran.output == "[1, 2]\n"
    else:
        # Semaphores have names in /dev/shm, which belongs to everybody; a pool of pipes goes on.
        assert "shm" in ran.output or "Permission denied" in ran.output
        pipes = "import os\nr, w = os.pipe()\nos.fork() or os._exit(os.write(w, b'x') - 1)\nprint(os.read(r, 1))\n"
        assert (await run(runtime, f"{sys.executable} - <<'END'\n{pipes}END\n")).output == "b'x'\n"


@needs("node", "npm")
async def test_node_and_npm(runtime: ProfileRuntime) -> None:
    done = await run(
        runtime,
        "export npm_config_update_notifier=false\n"
        'node -e \'const {execSync} = require("child_process"); console.log(execSync("echo sub").toString().trim())\'\n'
        'mkdir -p lib app; echo \'{"name": "lib", "version": "1.0.0"}\' > lib/package.json\n'
        "echo 'module.exports = 42' > lib/index.js; cd app; npm init -y >/dev/null 2>&1\n"
        "npm install --offline --no-audit --no-fund ../lib >/dev/null 2>&1; node -p 'require(\"lib\")'\n"
        "node -e 'const w = new WebAssembly.Memory({initial: 1}); console.log(w.buffer.byteLength)'",
    )
    assert done.output.splitlines() == ["sub", "42", "65536"], done


@needs("gcc", "make")
async def test_a_compiler_and_make(runtime: ProfileRuntime) -> None:
    done = await run(
        runtime,
        "printf '#include <stdio.h>\\nint main(void) { puts(\"built\"); return 0; }\\n' > main.c\n"
        "printf 'main: main.c\\n\\tgcc -o main main.c\\n' > Makefile; make -s -j2; ./main",
    )
    assert done.output == "built\n"


@needs("ps")
async def test_ps_shows_the_own_processes_where_there_is_a_namespace(runtime: ProfileRuntime, namespaces: bool) -> None:
    victim = await trio.lowlevel.open_process(["sleep", "7654"])
    try:
        ran = await run(runtime, "sleep 8765 & ps ax")
    finally:
        victim.kill()
        await victim.wait()
    assert "7654" not in ran.output
    assert ("sleep 8765" in ran.output) == namespaces


@needs("script")
async def test_a_program_makes_a_terminal_of_its_own_where_there_is_a_namespace(
    runtime: ProfileRuntime, namespaces: bool
) -> None:
    ran = await run(runtime, "script -qec 'test -t 0 && test -t 1 && echo terminal' /dev/null </dev/null")
    assert (ran.output.strip() == "terminal") == namespaces


async def test_a_refusal_names_what_is_granted_and_the_setting(runtime: ProfileRuntime) -> None:
    ran = await run(runtime, "cat /root/.bashrc")
    assert ran.exit_code != 0
    assert ran.explanation is not None
    assert str(runtime.home.user) in ran.explanation
    assert "terminal.read" in ran.explanation
    missing = await run(runtime, "cat missing.txt")
    assert missing.explanation is None, "a missing file of one's own is no refusal"


def test_bubblewrap_is_what_the_set_up_installs() -> None:
    listed = (Path(__file__).parents[2] / ".ci" / "packages").read_text().split()
    assert {"bubblewrap", "openssh-server", "ripgrep"} <= set(listed)
    if bubblewrap.find() is not None:
        subprocess.run([str(bubblewrap.find()), "--version"], check=True, stdout=subprocess.DEVNULL)
