"""The page on adding a method, followed to the letter in a copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "add-a-method.md"
NAMED_BLOCK = re.compile(r"^`([\w/]+\.py)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project with what the page says put into it."""
    place = tmp_path / "project"
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("hermes_ws", "docs", "tests", "clients"):
        shutil.copytree(ROOT / name, place / name, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", place)
    blocks = NAMED_BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(blocks) == 3, "the page names the file above each block"
    for name, code in blocks:
        (place / name).write_text(code, "utf-8")
    listing = place / "hermes_ws" / "contract" / "methods" / "__init__.py"
    text, count = re.subn(r'^    "vault",\n', '    "vault",\n    "words",\n', listing.read_text("utf-8"), flags=re.M)
    assert count == 1, "the topics are named there"
    listing.write_text(text, "utf-8")
    return place


def test_a_method_is_added_as_the_page_says(copy: Path) -> None:
    for arguments in (("docs.generate",), ("pytest", "-q", "-p", "no:cacheprovider", "tests/methods/test_words.py")):
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=copy,
            env={name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "## `session.words`" in (copy / "docs" / "reference" / "methods.md").read_text()
    assert (
        '"session.words": { params: WordsParams; result: Words }'
        in (copy / "clients" / "typescript" / "src" / "contract.ts").read_text()
    )
