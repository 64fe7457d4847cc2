"""The files of the dashboard, read once at the start: nothing of a request ever becomes a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

DASHBOARD: Final = Path(__file__).parent.parent / "dashboard"

TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".svg": "image/svg+xml",
    }
)
"""What is served, and as what; a file of another kind is not."""

INDEX: Final = "index.html"


@final
@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file, as it goes out."""

    type: str
    body: bytes


def read(directory: Path = DASHBOARD) -> Mapping[str, StaticFile]:
    """The files by the path that names them; the index is `/`. Raises OSError when the installation is incomplete."""
    files: dict[str, StaticFile] = {}
    for path in sorted(directory.rglob("*")):
        kind = TYPES.get(path.suffix)
        if kind is not None and path.is_file():
            name = path.relative_to(directory).as_posix()
            files["/" if name == INDEX else f"/{name}"] = StaticFile(kind, path.read_bytes())
    if "/" not in files:
        raise FileNotFoundError(f"there is no {INDEX} in {directory}")
    return MappingProxyType(files)
