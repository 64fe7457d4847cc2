"""What a line of the conversation means: words for the agent, or a command of the view. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

SCRIPT = "/do "
"""Begins a step of the loopback model's script. That is for the model, not for the view."""

HELP = (
    "/approve ID CHOICE [REASON]",
    "    answer an approval",
    "/answer ID TEXT",
    "    answer a question",
    "/stop",
    "    end the execution that runs",
    "/quit (/exit, /detach)",
    "    leave; what runs goes on",
    "//TEXT",
    "    say TEXT with one slash before it",
    "Anything else is said to the agent.",
)
"""Each line is at most 40 columns wide."""


@final
@dataclass(frozen=True, slots=True)
class Say:
    """Words for the agent."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Approve:
    """The decision on an approval."""

    id: str
    choice: str
    reason: str | None


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question."""

    id: str
    text: str


@final
@dataclass(frozen=True, slots=True)
class Stop:
    """End the execution that was last seen."""


@final
@dataclass(frozen=True, slots=True)
class Help:
    """Show what can be typed."""


@final
@dataclass(frozen=True, slots=True)
class Quit:
    """Leave."""


@final
@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty line."""


@final
@dataclass(frozen=True, slots=True)
class Wrong:
    """It cannot be meant like that; `why` is for the person."""

    why: str


Command = Say | Approve | Answer | Stop | Help | Quit | Nothing | Wrong


def parse(line: str) -> Command:
    """The meaning of one line, without its end. Never raises."""
    text = line.strip()
    if not text:
        return Nothing()
    if text.startswith("//"):
        return Say(text[1:])
    if not text.startswith("/") or text.startswith(SCRIPT):
        return Say(text)
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    match word:
        case "/approve":
            return _approve(rest)
        case "/answer":
            id, _, answer = rest.partition(" ")
            return Answer(id, answer.strip()) if answer.strip() else Wrong("Type /answer ID TEXT.")
        case "/quit" | "/exit" | "/detach" | "/stop" | "/help":
            if rest:
                return Wrong(f"{word} takes nothing after it.")
            return Stop() if word == "/stop" else Help() if word == "/help" else Quit()
        case _:
            return Wrong(f"{word} is no command here; /help shows those there are. To say it, type /{word}.")


def _approve(rest: str) -> Command:
    words = rest.split(maxsplit=2)
    if len(words) < 2:
        return Wrong("Type /approve ID CHOICE.")
    return Approve(words[0], words[1], words[2] if len(words) == 3 else None)
