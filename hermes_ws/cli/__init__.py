"""What a person starts: the hermes-ws command. Refused where it could promise nothing, before anything is loaded."""

from __future__ import annotations

import sys
from typing import Final

NOT_HERE: Final = (
    "hermes-ws does not run on Windows: nothing there would keep one profile from another.\n"
    "Run it in WSL 2 (wsl --install), or on another machine, and use the browser or a client from here."
)

if sys.platform == "win32":
    raise SystemExit(NOT_HERE)
