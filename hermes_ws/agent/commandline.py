"""Reading a command line as a shell would, as far as that is certain.

The reader exists to answer one question: which programs would run, with exactly which words? Where the answer depends
on anything but the text (a variable, a substitution, a file name pattern that could become an option) it says so, and
where it cannot be told at all the whole line is opaque. It never guesses, since what it understands may be allowed
without anyone looking.

What it reads: words, quotes, escapes, pipes, `&&`, `||`, `;`, newlines, comments, redirections. What it does not read:
compound commands, functions, subshells, here-documents, substitutions, arithmetic. POSIX.1-2024, XCU 2.2 to 2.9; where
bash and dash differ, the reading that is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, final

LONGEST: Final = 16_384
"""Characters of a command line that are read; a longer one is asked as a whole: no rule was written with it in mind."""

MAY_BE_OPTION: Final = "it holds a pattern that a file name could turn into an option"
"""A problem of a part. It is none for programs all of whose options are harmless (`programs.any_option_reads`)."""

_BLANKS: Final = frozenset(" \t")
_ENDS_WORD: Final = frozenset(" \t\n;&|<>()")
_GLOBS: Final = frozenset("*?[")
_NAME_START: Final = re.compile(r"[A-Za-z0-9_@*#?$!-]", re.ASCII)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=", re.ASCII)
_KEYWORDS: Final = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select"}
    | {"function", "time", "coproc", "{", "}", "[[", "]]", "!"}
)
_REDIRECTIONS: Final = ("&>>", "<<-", "<<<", "&>", ">>", ">|", ">&", "<&", "<>", "<<", ">", "<")
_MENTION: Final = re.compile(r"[^\s;&|<>()`${}=,]+")
_QUOTING: Final = re.compile(r"[\"'\\]")


@final
@dataclass(frozen=True, slots=True)
class Part:
    """One simple command. `problems` are sentences on why its words do not tell what it does; mostly there are none.

    `piped` tells that it reads what the part before it writes. `patterns` are those of its words in which the shell
    looks for file names. `sources` are the files that its input is redirected from.
    """

    argv: tuple[str, ...]
    problems: tuple[str, ...] = ()
    piped: bool = False
    patterns: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line taken apart. With a `problem` it is opaque: `parts` is empty, and it is judged as a whole."""

    text: str
    parts: tuple[Part, ...] = ()
    problem: str | None = None


def parse(text: str) -> CommandLine:
    """Take a command line apart. Never raises."""
    strange = _strange(text)
    if strange:
        return CommandLine(text, problem=strange)
    try:
        parts = _Reader(text).parts()
    except _Opaque as opaque:
        return CommandLine(text, problem=str(opaque))
    if not parts:
        return CommandLine(text, problem="it holds no command")
    return CommandLine(text, tuple(parts))


def mentions(text: str) -> tuple[str, ...]:
    """Whatever in a command line could be a word of a command, in order, whether it is one or not.

    For rules that deny: what hides a denied command in a substitution or behind another program still names it.
    """
    return tuple(_MENTION.findall(_QUOTING.sub("", text)))


def _strange(text: str) -> str | None:
    if len(text) > LONGEST:
        return "it is too long to be read"
    for character in text:
        if character in "\t\n" or " " <= character <= "~":
            continue
        # Format characters (bidirectional marks, zero widths) make a line look like another; CR and NUL do as well.
        if character < "\x80" or character.isspace() or not character.isprintable():
            return "it holds characters that do not show"
    return None


@final
class _Opaque(Exception):
    """The line cannot be taken apart; the message says why."""


@final
class _Word:
    """One word while it is read: its text after quote removal, and what else it would be expanded by."""

    __slots__ = ("bare", "brace", "glob", "text", "variable")

    def __init__(self) -> None:
        self.text: str = ""
        self.bare: int = 0
        """Characters at the beginning that are neither quoted nor escaped."""
        self.glob: int | None = None
        """Where the first pattern character stands."""
        self.variable: bool = False
        self.brace: bool = False

    def add(self, character: str, *, quoted: bool) -> None:
        if not quoted and self.bare == len(self.text):
            self.bare += len(character)
        if not quoted and character in _GLOBS and self.glob is None:
            self.glob = len(self.text)
        if not quoted and character == "{":
            self.brace = True
        self.text += character

    @property
    def is_bare(self) -> bool:
        return self.bare == len(self.text)


@final
class _Reader:
    """Reads one line from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parts(self) -> list[Part]:
        """All simple commands in order. Raises _Opaque."""
        found: list[Part] = []
        needs_more = piped = False
        while True:
            self._skip(newlines=True)
            if self._at >= len(self._text):
                if needs_more:
                    raise _Opaque("it ends where a command should follow")
                return found
            part = self._part()
            found.append(replace(part, piped=piped))
            at = self._at
            needs_more = self._operator(found)
            piped = self._text[at : self._at] in ("|", "|&")

    def _operator(self, found: list[Part]) -> bool:
        """Pass what stands between two commands; true when another one must follow."""
        for operator, more in (("&&", True), ("||", True), ("|&", True), ("|", True), (";;", False), (";", False)):
            if self._text.startswith(operator, self._at):
                if operator == ";;":
                    raise _Opaque("it holds a case")
                self._at += len(operator)
                return more
        if self._text.startswith("&", self._at):
            self._at += 1
            last = found[-1]
            found[-1] = replace(last, problems=(*last.problems, "it goes on in the background"))
        elif self._text.startswith("\n", self._at):
            self._at += 1
        return False

    def _part(self) -> Part:
        """One simple command: assignments, words and redirections up to an operator."""
        words: list[_Word] = []
        problems: list[str] = []
        sources: list[str] = []
        while True:
            self._skip(newlines=False)
            redirection = self._redirection(sources)
            if redirection is not None:
                problems.extend(redirection)
                continue
            if self._at >= len(self._text) or self._text[self._at] in _ENDS_WORD:
                break
            word = self._word()
            if word.is_bare and word.text.isascii() and word.text.isdigit() and self._peek() in ("<", ">"):
                continue  # The descriptor number of the redirection that follows.
            assignment = _ASSIGNMENT.match(word.text) if not words else None
            if assignment is not None and assignment.end() <= word.bare:
                problems.append(f"it sets {word.text[: assignment.end() - 1]} in front")
                continue
            words.append(word)
        if self._peek() in ("(", ")"):
            raise _Opaque("it holds a subshell or a function")
        if not words and not problems and not sources:
            raise _Opaque("an operator stands where a command should")
        if words and words[0].is_bare and words[0].text in _KEYWORDS:
            raise _Opaque(f"it holds {words[0].text!r}")
        problems.extend(_expansions(words))
        argv, patterns = tuple(word.text for word in words), tuple(word.text for word in words if word.glob is not None)
        return Part(argv, tuple(problems), patterns=patterns, sources=tuple(sources))

    def _redirection(self, sources: list[str]) -> list[str] | None:
        """Pass a redirection and tell what is wrong with it; None when there is none here.

        A file that is only read from is added to `sources`: whether that is wrong depends on where it lies.
        """
        for operator in _REDIRECTIONS:
            if self._text.startswith(operator, self._at):
                break
        else:
            return None
        self._at += len(operator)
        if operator.startswith("<<"):
            raise _Opaque("it holds a here-document")
        if self._peek() == "(":
            raise _Opaque("it holds a process substitution")
        self._skip(newlines=False)
        if self._at >= len(self._text) or self._text[self._at] in _ENDS_WORD:
            raise _Opaque("a redirection leads nowhere")
        target = self._word()
        if operator in (">&", "<&") and target.is_bare and re.fullmatch(r"[0-9]+|-", target.text, re.ASCII):
            return []
        if target.text == "/dev/null" and not target.variable:
            return []
        if operator == "<" and not target.variable and not target.brace and target.glob is None and target.text:
            sources.append(target.text)
            return []
        return [f"it redirects {'from' if operator == '<' else 'to'} {target.text}"]

    def _word(self) -> _Word:
        word = _Word()
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_WORD:
            character = self._text[self._at]
            if character == "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise _Opaque("a quote is not closed")
                word.add(self._text[self._at + 1 : end], quoted=True)
                self._at = end + 1
            elif character == '"':
                self._double(word)
            elif character == "\\":
                self._escape(word)
            elif character in "$`":
                self._dollar(word, quoted=False)
            else:
                word.add(character, quoted=False)
                self._at += 1
        return word

    def _double(self, word: _Word) -> None:
        self._at += 1
        word.add("", quoted=True)
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return
            if character == "\\" and self._text[self._at + 1 : self._at + 2] in ("$", "`", '"', "\\", "\n"):
                self._escape(word)
            elif character in "$`":
                self._dollar(word, quoted=True)
            else:
                word.add(character, quoted=True)
                self._at += 1
        raise _Opaque("a quote is not closed")

    def _escape(self, word: _Word) -> None:
        escaped = self._text[self._at + 1 : self._at + 2]
        if not escaped:
            raise _Opaque("it ends with a backslash")
        if escaped != "\n":  # An escaped newline is nothing at all (XCU 2.2.1).
            word.add(escaped, quoted=True)
        self._at += 2

    def _dollar(self, word: _Word, *, quoted: bool) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if self._text[self._at] == "`" or following == "(":
            raise _Opaque("it holds a substitution")
        if following in ("{", "["):
            raise _Opaque("it holds an expansion")
        if following in ("'", '"') and not quoted and following:
            raise _Opaque("it holds a quote of bash's own")
        if following and _NAME_START.match(following):
            word.variable = True
        word.add("$", quoted=True)
        self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, *, newlines: bool) -> None:
        """Pass blanks, escaped newlines and, where a word could begin, a comment."""
        while self._at < len(self._text):
            character = self._text[self._at]
            if character in _BLANKS or (newlines and character == "\n"):
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif character == "#" and (self._at == 0 or self._text[self._at - 1] in _ENDS_WORD):
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return


def _expansions(words: list[_Word]) -> list[str]:
    """What could make other words of these than the ones that stand there."""
    problems: list[str] = []
    for position, word in enumerate(words):
        if word.variable:
            problems.append("it holds a variable")
        if word.brace and word.text != "{}":
            problems.append("it holds a brace expansion")
        if word.glob is not None:
            before = word.text[: word.glob]
            if position == 0 and word.text != "[":
                problems.append("its program's name holds a pattern")
            elif position and (not before or before.startswith("-")):
                problems.append(MAY_BE_OPTION)
    if words and not words[0].text:
        problems.append("its program has no name")
    return list(dict.fromkeys(problems))
