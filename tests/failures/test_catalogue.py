"""The catalog of this directory leads somewhere: what a row names as its proof says which case it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ROWS = re.findall(
    r"^\| ((?:ASK|ATTACH|AUTH|FRAME|OWNER|SKEW)-\d+) \|[^|]*\|([^|]*)\|$", (HERE / "README.md").read_text(), re.M
)
"""The cases of clients and servers; a case of two digits stands for one report."""


def said(path: Path, case: str) -> bool:
    """Whether a file of tests, or one of a directory of them, names the case."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    named = case.lower().replace("-", "_")
    return any(case in text or f"def test_{named}_" in text for text in (each.read_text("utf-8") for each in files))


@pytest.mark.parametrize(("case", "proofs"), ROWS, ids=[case for case, _ in ROWS])
def test_what_proves_a_case_names_it(case: str, proofs: str) -> None:
    paths = [HERE / each if "/" not in each else ROOT / each for each in re.findall(r"`([\w./-]+)`", proofs)]
    assert paths, "a row names its proof"
    assert [path for path in paths if not path.exists()] == []
    assert any(said(path, case) for path in paths), "no test that the row names says which case it proves"


def test_all_rows_are_looked_at() -> None:
    assert len(ROWS) > 50
