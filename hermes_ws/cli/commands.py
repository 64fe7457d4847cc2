"""What a line of the conversation means: words for the agent, or a command of the view. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, final

SCRIPT = "/do "
"""Begins a step of the loopback model's script. That is for the model, not for the view."""

HELP: Final = (
    "/approve ID CHOICE [REASON]",
    "    answer an approval",
    "/answer ID TEXT",
    "    answer a question",
    "/stop",
    "    end the execution that runs",
    "/discard ID",
    "    give a lost execution up",
    "/title [NAME]",
    "    show or change the title",
    "/model [NAME] [--provider NAME]",
    "    show or change the model",
    "/yolo [on|off]",
    "    ask for no approvals here",
    "/compress [here N | FOCUS] [--preview]",
    "    summarise what is old",
    "/undo [N]",
    "    take back what was said last",
    "/retry",
    "    have it answered anew",
    "/branch [TITLE] (/fork)",
    "    go on in a copy",
    "/new [TITLE] (/reset, /clear)",
    "    begin a session like this one",
    "/usage, /tools",
    "    what it took; what it may use",
    "/quit (/exit, /detach)",
    "    leave; what runs goes on",
    "//TEXT",
    "    say TEXT with one slash before it",
    "/commands",
    "    what the server has behind a slash",
    "Anything else is said to the agent.",
)
"""Each line is at most 40 columns wide."""

IN_VIEW: Final = (
    ("approve", "answers the question of that id"),
    ("answer", "answers the question of that id"),
    ("stop", "session.interrupt of the execution that was seen"),
    ("discard", "prompt.resolve_unknown of that execution"),
    ("branch", "session.mutate branch; the view moves there"),
    ("fork", "as /branch"),
    ("model", "session.mutate model; bare: slash.exec"),
    ("compress", "session.mutate compress"),
    ("compact", "as /compress"),
    ("yolo", "config.set yolo of this session"),
    ("title", "session.mutate rename; bare: slash.exec"),
    ("undo", "session.mutate rewind; the text comes back"),
    ("retry", "session.mutate retry"),
    ("new", "session.create with this session's options"),
    ("reset", "as /new"),
    ("clear", "as /new"),
    ("usage", "slash.exec, and the last turn"),
    ("tools", "the session's toolsets"),
    ("help", "the view's own list"),
    ("commands", "slash.exec help: what the server has"),
    ("quit", "leaves; nothing is stopped"),
    ("exit", "as /quit"),
    ("detach", "as /quit"),
)
"""What the view does itself, and by which method; the parity table is made of this."""


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
class Discard:
    """Give up a lost execution, by its admission."""

    id: str


@final
@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of the session: `session.mutate`, with what its payload is."""

    operation: Literal["rename", "model", "compress", "branch", "retry"]
    payload: tuple[tuple[str, str | int | bool], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Undo:
    """Take back the last `count` things that were said."""

    count: int


@final
@dataclass(frozen=True, slots=True)
class Yolo:
    """Approvals of this session off or on; None turns it over."""

    on: bool | None


@final
@dataclass(frozen=True, slots=True)
class New:
    """Another session made like this one."""

    title: str | None


@final
@dataclass(frozen=True, slots=True)
class Usage:
    """What the session took, and its last turn."""

    line: str


@final
@dataclass(frozen=True, slots=True)
class Tools:
    """What the session may use."""


@final
@dataclass(frozen=True, slots=True)
class Slash:
    """A command of the server."""

    line: str


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


Command = (
    Say
    | Approve
    | Answer
    | Discard
    | Edit
    | Undo
    | Yolo
    | New
    | Usage
    | Tools
    | Slash
    | Stop
    | Help
    | Quit
    | Nothing
    | Wrong
)


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
        case "/":
            return Wrong("/help shows the commands there are. To say a slash, type //.")
        case "/approve":
            return _approve(rest)
        case "/answer":
            id, _, answer = rest.partition(" ")
            return Answer(id, answer.strip()) if answer.strip() else Wrong("Type /answer ID TEXT.")
        case "/quit" | "/exit" | "/detach" | "/stop" | "/help" | "/retry" | "/tools":
            if rest:
                return Wrong(f"{word} takes nothing after it.")
            return _alone(word)
        case "/discard":
            return Discard(rest) if rest and " " not in rest else Wrong("Type /discard ID.")
        case "/undo":
            return _undo(rest)
        case "/yolo":
            known = {"": None, "on": True, "off": False}
            return Yolo(known[rest]) if rest in known else Wrong("Type /yolo, /yolo on or /yolo off.")
        case "/new" | "/reset" | "/clear":
            return New(rest or None)
        case "/usage":
            return Usage(text)
        case "/commands":
            return Slash("/help")
        case "/title" if rest:
            return Edit("rename", (("title", rest),))
        case "/branch" | "/fork":
            return Edit("branch", (("title", rest),) if rest else ())
        case "/model" if rest:
            return _model(rest.split())
        case "/compress" | "/compact":
            return _compress(rest.split())
        case _:
            return Slash(text)


def _alone(word: str) -> Command:
    match word:
        case "/stop":
            return Stop()
        case "/help":
            return Help()
        case "/retry":
            return Edit("retry")
        case "/tools":
            return Tools()
        case _:
            return Quit()


def _approve(rest: str) -> Command:
    words = rest.split(maxsplit=2)
    if len(words) < 2:
        return Wrong("Type /approve ID CHOICE.")
    return Approve(words[0], words[1], words[2] if len(words) == 3 else None)


def _undo(rest: str) -> Command:
    if not rest:
        return Undo(1)
    if rest.isascii() and rest.isdigit() and 0 < len(rest) < 5 and int(rest):
        return Undo(int(rest))
    return Wrong("Type /undo, or /undo N.")


def _model(words: list[str]) -> Command:
    model, *rest = words
    if model.startswith("-") or (rest and (len(rest) != 2 or rest[0] != "--provider")):
        return Wrong("Type /model NAME, or /model NAME --provider NAME.")
    provider = (("provider", rest[1]),) if rest else ()
    return Edit("model", (("model", model), *provider))


def _compress(words: list[str]) -> Command:
    preview = "--preview" in words
    words = [word for word in words if word != "--preview"]
    if any(word.startswith("--") for word in words):
        return Wrong("/compress takes --preview and no other option.")
    payload: list[tuple[str, str | int | bool]] = [("preview", True)] if preview else []
    if words[:1] == ["here"]:
        count = words[1] if len(words) == 2 else "2" if len(words) == 1 else ""
        if not (count.isascii() and count.isdigit() and 0 < int(count) <= 1000):
            return Wrong("Type /compress here N; N messages stay as they are.")
        return Edit("compress", (*payload, ("here", int(count))))
    return Edit("compress", (*payload, *([("focus", " ".join(words))] if words else [])))
