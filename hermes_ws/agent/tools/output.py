"""Making output fit for a model: no escape sequences, no secrets that they hid, within a budget.

The order matters. Escape sequences go first, because they can split a secret; then secrets; then the middle is cut,
because a cut could split one as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

BUDGET: Final = 30_000
"""Characters of output that a model is shown of one call: about 8,000 tokens, more than a screenful of any log."""

HEAD_SHARE: Final = 0.4
"""Part of the budget that the beginning gets. Builds and tests say what matters at the end."""

_ESCAPES: Final = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links (ECMA-48, 8.3.89)
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC strings
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor movement
    r"|\x1b[ -/]*[0-~]?"  # two- and three-character sequences
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\x80-\x9f]"  # other control characters
)
_CARRIAGE: Final = re.compile(r"[^\n]*\r(?!\n)")


@final
@dataclass(frozen=True, slots=True)
class Fitted:
    """Text for the model, and whether something was left out of it.

    `whole` is all of it, redacted and with its escape sequences, where `text` is less.
    """

    text: str
    cut: bool
    whole: str | None = None


def plain(text: str) -> str:
    """`text` as it would stand on paper: no escape sequences, and of an overwritten line what was written last."""
    without = _ESCAPES.sub("", text) if _ESCAPES.search(text) else text
    if "\r" not in without:
        return without
    unified = without.replace("\r\n", "\n").rstrip("\r")
    return _CARRIAGE.sub("", unified)


def fit(text: str, redact: Callable[[str], str], *, budget: int = BUDGET) -> Fitted:
    """`text` for the model: plain, redacted, and if it is too long, its head and tail with a line that says so."""
    clean = redact(plain(text))
    if len(clean) <= budget:
        return Fitted(clean, cut=False, whole=_whole(text, clean, redact) if "\x1b" in text else None)
    head = int(budget * HEAD_SHARE)
    tail = budget - head
    left_out = len(clean) - budget
    shown = f"{clean[:head]}\n[… {left_out:,} characters left out here …]\n{clean[-tail:]}"
    return Fitted(shown, cut=True, whole=_whole(text, clean, redact))


def _whole(text: str, clean: str, redact: Callable[[str], str]) -> str:
    """All of it with its colours, unless an escape sequence stands within a secret: then without them."""
    coloured = redact(text)
    return coloured if plain(coloured) == clean else clean
