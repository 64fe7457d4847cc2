"""The page's modules fit together, and fit the contract that is generated."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TYPESCRIPT = "typescript@7.0.2"


@pytest.fixture(scope="module")
def tsc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        if os.environ.get("CI"):
            pytest.fail("npm is not installed")
        pytest.skip("needs npm: apt-get install npm")
    place = tmp_path_factory.mktemp("typescript")
    command = [npm, "install", "--prefix", str(place), "--no-audit", "--no-fund", "--silent", TYPESCRIPT]
    subprocess.run(command, check=True, timeout=240)
    return place / "node_modules" / ".bin" / "tsc"


def test_the_modules_are_typed_by_the_contract(tsc: Path) -> None:
    done = subprocess.run([tsc, "-p", ROOT / "hermes_ws" / "dashboard"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_module_that_does_not_fit_is_noticed(tsc: Path, tmp_path: Path) -> None:
    """Else the test before this one would prove nothing."""
    place = tmp_path / "hermes_ws" / "dashboard"
    shutil.copytree(ROOT / "hermes_ws" / "dashboard", place)
    shutil.copytree(ROOT / "clients" / "typescript" / "src", tmp_path / "clients" / "typescript" / "src")
    with (place / "pane.js").open("a") as file:
        file.write('\n/** @param {Pane} pane */\nexport const wrong = (pane) => pane.gateway.call("no.such", {});\n')
    done = subprocess.run([tsc, "-p", place], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no.such" in done.stdout
