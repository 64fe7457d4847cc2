"""The script that the loopback model follows: lines of the user's text that begin with `/do`.

A script is cut into replies. Each ends with a batch of tool calls, but the last, which ends with the script. Which
reply comes next follows from the history alone, so that a script goes on after a restart as after a step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast, final

from pydantic import JsonValue

PIECES: Final = 100_000
"""Most pieces of one `/do stream`: minutes of text, so that a typing error does not stream for days."""

WAIT_S: Final = 3600.0
"""Longest `/do wait` and, in all, longest pause of a `/do stream`."""

PIECE_CHARACTERS: Final = 65_536
"""Longest piece of a `/do stream`."""

DEFAULT_CHARACTERS: Final = 8
"""Length of a piece when the line does not say: about a word."""


@final
@dataclass(frozen=True, slots=True)
class Say:
    """A sentence of text, with the space that parts it from the next."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Stream:
    """`pieces` pieces of `characters` each, `pause_s` apart."""

    pieces: int
    pause_s: float
    characters: int


@final
@dataclass(frozen=True, slots=True)
class Wait:
    """Silence."""

    seconds: float


@final
@dataclass(frozen=True, slots=True)
class Fail:
    """An error of this type."""

    type: str


@final
@dataclass(frozen=True, slots=True)
class Report:
    """Token counts to report of this reply."""

    input_tokens: int
    output_tokens: int


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A tool call."""

    name: str
    arguments: Mapping[str, JsonValue]


Step = Say | Think | Stream | Wait | Fail | Report | Call


@final
@dataclass(frozen=True, slots=True)
class Script:
    """`words` is what stands around the `/do` lines; `replies` are the steps, cut after each batch of calls."""

    words: str
    replies: tuple[tuple[Step, ...], ...]

    def reply(self, number: int) -> tuple[Step, ...]:
        """The steps of the reply after `number` batches were answered; none when the script is at its end."""
        return self.replies[number] if number < len(self.replies) else ()


def read(text: str) -> Script:
    """Read a script. A `/do` line that is none becomes a sentence that says so; nothing raises."""
    words: list[str] = []
    replies: list[tuple[Step, ...]] = []
    current: list[Step] = []
    for line in text.splitlines():
        command = line.strip()
        step = _step(command[3:].strip()) if command == "/do" or command.startswith(("/do ", "/do\t")) else None
        if step is None and command:
            words.append(line)
        batch_ends = current and isinstance(current[-1], Call) and not isinstance(step, Call)
        if batch_ends:
            replies.append(tuple(current))
            current = []
        if step is not None:
            current.append(step)
    if current:
        replies.append(tuple(current))
    return Script("\n".join(words), tuple(replies))


def _step(line: str) -> Step:
    verb, _, rest = line.partition(" ")
    rest = rest.strip()
    try:
        return _read_step(verb, rest)
    except (ValueError, OverflowError, RecursionError):
        return Say(f"I cannot follow “/do {line[:200]}”.")


def _read_step(verb: str, rest: str) -> Step:
    match verb:
        case "say":
            return Say(_given(rest))
        case "think":
            return Think(_given(rest))
        case "run":
            return Call("terminal", {"command": _given(rest)})
        case "read":
            return Call("read_file", {"path": _given(rest)})
        case "write":
            path, _, content = _given(rest).partition(" ")
            return Call("write_file", {"path": path, "content": content})
        case "ask":
            return Call("clarify", {"questions": [{"question": _given(rest)}]})
        case "delegate":
            return Call("delegate_task", {"goal": _given(rest)})
        case "tool":
            name, _, arguments = _given(rest).partition(" ")
            return Call(name, _object(arguments))
        case "stream":
            numbers = [float(each) for each in rest.split()]
            return _stream(numbers)
        case "wait":
            return Wait(_within(float(rest), WAIT_S))
        case "fail":
            return Fail(_given(rest))
        case "usage":
            tokens_in, tokens_out = (int(each) for each in rest.split())
            return Report(int(_within(tokens_in, 1e12)), int(_within(tokens_out, 1e12)))
        case _:
            raise ValueError(verb)


def _stream(numbers: Sequence[float]) -> Stream:
    if not 1 <= len(numbers) <= 3:
        raise ValueError("stream takes one to three numbers")
    pieces = int(_within(numbers[0], PIECES))
    pause_s = _within(numbers[1] / 1000 if len(numbers) > 1 else 0.0, WAIT_S)
    characters = int(_within(numbers[2] if len(numbers) > 2 else DEFAULT_CHARACTERS, PIECE_CHARACTERS))
    if pieces * pause_s > WAIT_S or characters < 1:
        raise ValueError("out of bounds")
    return Stream(pieces, pause_s, characters)


def _given(text: str) -> str:
    if not text:
        raise ValueError("something is missing")
    return text


def _within(number: float, most: float) -> float:
    if not 0 <= number <= most:
        raise ValueError("out of bounds")
    return number


def _object(text: str) -> Mapping[str, JsonValue]:
    value: object = json.loads(text) if text.strip() else {}
    if not isinstance(value, dict):
        raise ValueError("arguments are an object")
    return cast("dict[str, JsonValue]", value)
