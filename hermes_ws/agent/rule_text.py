"""What of a text that holds rules is fit for a model: what shows, and nothing that turns the agent against its user."""

from __future__ import annotations

import re
from typing import Final

_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SECRETS: Final = r"(?:\b(?:secrets?|credentials?|passwords?|api[ _-]?keys?|tokens?|private keys?)|\.env)\b"
_USER: Final = r"\b(?:the |your )?user\b"
_TURNING: Final = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        r"\b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:previous|prior|above|earlier|system|all other)\b"
        r"[^.]{0,40}\b(?:instructions?|rules?|prompts?|guidelines?)",
        rf"\b(?:do not|don't|never)\b[^.]{{0,20}}\b(?:tell|inform|mention)\b[^.]{{0,40}}{_USER}",
        rf"\b(?:hide|conceal)\b[^.]{{0,40}}\bfrom {_USER}",
        rf"(?<!not )(?<!n't )(?<!ever )\b(?:send|upload|post|exfiltrate|transmit|leak)\b[^.]{{0,60}}{_SECRETS}"
        r"[^.]{0,60}(?:\bto\b|https?://)",
        r"\b(?:curl|wget)\b.{0,200}\$\{?\w*(?:KEY|TOKEN|SECRET|PASSW)",
        r"\byou are (?:now|no longer)\b[^.]{0,60}\b(?:unrestricted|jailbroken|developer mode|bound by|without limits)",
        r"\b(?:pretend|act as if|assume)\b[^.]{0,40}\b(?:approved|permitted|allowed)\b[^.]{0,40}\b(?:all|any)",
    )
)
"""What rules for work have no use for. Found in one line, with the line ends of the text as blanks."""


def visible(text: str) -> str:
    """A text without its comments and without characters that do not show: a person who looks at it sees neither."""
    text = _COMMENT.sub("", text)
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    shown = (each if each in "\n\t" or each.isprintable() else " " * each.isspace() for each in text)
    return "".join(shown)


def turning(text: str) -> str | None:
    """The words by which a text tries to turn an agent against its user; None where it does not."""
    plain = " ".join(text.split())
    found = next(filter(None, (pattern.search(plain) for pattern in _TURNING)), None)
    return None if found is None else found.group(0)[:160]
