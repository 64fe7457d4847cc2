"""Loading what a command needs, all at once, without a look for garbage in between.

Modules and the classes in them stay for as long as the process does. While hundreds of them are made, Python's search
for unreachable cycles goes through all of them again and again and finds nothing, which takes a tenth of the start.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """For the imports of a command. What is there at the end is never looked through again; what comes later is."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
