"""May the agent do this? Rules decide; what no rule decides is asked.

The profile's rules come first, in their order, then the default rules; the first that fits decides and is named. What a
person allowed for the session lifts an `ask`, never a `deny`. A command line is judged part by part and the strictest
answer counts. A rule about a program's name never allows a part whose name does not tell what would run (`commandline`,
`programs`): that is asked. A rule that denies is held more widely: it also fits where such a part only mentions the
command. What is dangerous (`dangers`) is allowed only by a rule, or an earlier yes, that says exactly that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, final

from hermes_ws.agent.commandline import MAY_BE_OPTION, CommandLine, Part, mentions, parse
from hermes_ws.agent.dangers import CREDENTIALS, danger_mentioned, danger_of, secret_path
from hermes_ws.agent.programs import any_option_reads, follows_links, problems_of, program, reads_only
from hermes_ws.agent.reach import Place
from hermes_ws.agent.rules import tells_agents
from hermes_ws.agent.tools.tool import Subject
from hermes_ws.scope.sections import RuleConfig

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "auto", "deny"]

OWN: Final = frozenset({"delegates", "remembers"})
"""What touches nothing but the agent's own: a subagent's calls are decided about one by one, as all others."""

_MAGIC: Final = re.compile(r"([*?\[])")
"""Characters that are a pattern to `fnmatch`; between brackets they stand for themselves."""

_PATTERN: Final = re.compile(r"[*?]")

_STRICTNESS: Final[Mapping[Verdict, int]] = MappingProxyType({"allow": 0, "ask": 1, "deny": 2})


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """What is to become of a call, and the rule that says so. `prefixes` are the command parts that are asked about.

    `danger` says what is dangerous about it. `asking` is the number of the profile's rule that wants it asked, where it
    is one: a rule that is to allow it must stand before that one.
    """

    verdict: Verdict
    rule: str
    prefixes: tuple[tuple[str, ...], ...] = ()
    danger: str | None = None
    asking: int | None = None


@final
@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """Mode and rules of a profile, and whether a kernel confines what its tools do.

    With `yolo`, a session's own choice, nothing is asked; what a rule denies, and what `deny` does not ask, is denied.
    """

    mode: Mode = "ask"
    rules: Sequence[RuleConfig] = ()
    confined: bool = False
    dangers: bool = True
    yolo: bool = False
    git_programs: Literal["ask", "trusted"] = "ask"
    """Whether what a repository has git run is looked for, and then asked about."""

    @property
    def looks_at_git(self) -> bool:
        """Whether it makes a difference what a repository has git run."""
        unasked = self.yolo or (self.mode == "auto" and self.confined)
        return self.git_programs == "ask" and not unasked

    def in_mode(self, mode: Mode | None) -> ApprovalPolicy:
        """The same rules in another mode; the same policy for None."""
        return self if mode is None else replace(self, mode=mode)


@final
class SessionApprovals:
    """What was allowed for the rest of one session. It is not stored, and no other session has a part in it."""

    def __init__(self) -> None:
        self._prefixes: set[tuple[str, ...]] = set()
        self._exact: set[tuple[str, str]] = set()

    def remember(self, subject: Subject, decision: Decision) -> None:
        """Allow from now on exactly what the question showed: these argv prefixes, or this very line, path or tool."""
        if decision.prefixes:
            self._prefixes.update(decision.prefixes)
        else:
            self._exact.add(_exactly(subject))

    def covers(self, subject: Subject) -> bool:
        """Whether this very line, path or tool was allowed."""
        return _exactly(subject) in self._exact

    def covers_argv(self, argv: Sequence[str], *, exactly: bool = False) -> bool:
        """Whether these words begin as a command that was allowed; with `exactly`, whether they are one."""
        if exactly:
            return tuple(argv) in self._prefixes
        return any(tuple(argv[: len(prefix)]) == prefix for prefix in self._prefixes)


def decide(subject: Subject, *, policy: ApprovalPolicy, session: SessionApprovals, place: Place) -> Decision:
    """Decide about one call. Looks at nothing but its arguments; `place` is what `reach.place_of` found on the disk."""
    judge = _judge if subject.command is None else _judge_line
    found = judge(subject, policy, session, place)
    if found.verdict != "ask":
        return found
    if policy.mode == "deny":
        return Decision("deny", f"approvals.mode is deny, and it would have been asked ({found.rule})")
    if policy.yolo:
        return Decision("allow", "yolo: this session asks for nothing", danger=found.danger)
    if policy.mode == "auto" and policy.confined and found.danger is None:
        return Decision("allow", f"approvals.mode is auto ({found.rule})")
    return found


def judged_parts(
    subject: Subject, *, policy: ApprovalPolicy, session: SessionApprovals, place: Place
) -> Sequence[tuple[Part, Decision]]:
    """The parts of a command line, each with what is decided about it; nothing for a call without one.

    For explanations: the whole is decided by `decide`, of which the strictest of these is one ground.
    """
    if subject.command is None:
        return ()
    line = parse(subject.command)
    return [(part, _judge_part(part, line, policy, session, subject, place)) for part in _parted(line)]


def _judge(subject: Subject, policy: ApprovalPolicy, session: SessionApprovals, place: Place) -> Decision:
    """Decide about a call that has no command line."""
    cwd, resolved = place.cwd, place.resolved
    danger = _danger(subject, resolved) if policy.dangers else None
    for number, rule in enumerate(policy.rules):
        if not (_about(rule, subject) and rule.command is None and rule.argv is None):
            continue
        if not _path_fits(rule, cwd, resolved):
            continue
        if rule.decision == "ask" and session.covers(subject):
            break
        if rule.decision == "allow" and danger is not None and (rule.path is None or _PATTERN.search(rule.path)):
            return Decision("ask", f"{_named(number, rule)} does not cover it: {danger}", danger=danger, asking=number)
        return Decision(rule.decision, _named(number, rule), danger=danger, asking=number)
    if session.covers(subject):
        return Decision("allow", "allowed for this session")
    if subject.needs == frozenset({"asks"}):
        return Decision("allow", "default: questions are asked")
    if subject.needs <= OWN:
        return Decision("allow", "default: what an agent delegates is judged when it is done, and notes are its own")
    if subject.path is None or resolved is None or not subject.needs <= {"reads", "writes"}:
        return Decision("ask", "no rule is about this tool", danger=danger)
    if danger is not None:
        return Decision("ask", f"no rule allows it, and {danger}", danger=danger)
    if not policy.confined:
        return Decision("ask", "nothing is confined here, so files are asked about")
    if not resolved.is_relative_to(cwd):
        return Decision("ask", "the path is outside of the session's directory")
    if "writes" in subject.needs and _steers_git(resolved, cwd):
        return Decision("ask", "git takes programs to run from this file")
    if "writes" in subject.needs and tells_agents(resolved):
        # What an agent was talked into writing here, every later one would be told to follow.
        return Decision("ask", "agents take rules from this file")
    return Decision("allow", "default: files in the session's directory")


def _judge_line(subject: Subject, policy: ApprovalPolicy, session: SessionApprovals, place: Place) -> Decision:
    """Decide about a command line: the strictest of its parts."""
    line = parse(subject.command or "")
    judged = [_judge_part(part, line, policy, session, subject, place) for part in _parted(line)]
    if session.covers(subject):
        # An earlier yes does not lift a rule that denies: the profile may have been told to since.
        denied = [each for each in judged if each.verdict == "deny"]
        return denied[0] if denied else Decision("allow", "allowed for this session")
    strictest = max(judged, key=lambda each: _STRICTNESS[each.verdict])
    asked = [each for each in judged if each.verdict == "ask"]
    prefixes: tuple[tuple[str, ...], ...] = ()
    if strictest.verdict == "ask" and all(each.prefixes for each in asked):
        prefixes = tuple(dict.fromkeys(prefix for each in asked for prefix in each.prefixes))
    danger = next((each.danger for each in asked if each.danger is not None), strictest.danger)
    asking = min((each.asking for each in asked if each.asking is not None), default=None)
    return Decision(strictest.verdict, strictest.rule, prefixes, danger, asking)


def _parted(line: CommandLine) -> Sequence[Part]:
    """The parts of a line; one without words, and with the reason, where it could not be taken apart."""
    return line.parts or (Part((), (line.problem or "it holds no command",)),)


def _judge_part(
    part: Part, line: CommandLine, policy: ApprovalPolicy, session: SessionApprovals, subject: Subject, place: Place
) -> Decision:
    problems = problems_in(part, place)
    danger = danger_of(part, line, hides=bool(problems)) if policy.dangers else None
    covered = session.covers_argv(part.argv, exactly=danger is not None) and not problems
    named = _words(part.argv)
    for number, rule in enumerate(policy.rules):
        if not _about(rule, subject) or rule.path is not None:
            continue
        if rule.decision == "ask" and covered:
            continue
        pattern = None if rule.command is None and rule.argv is None else _pattern(rule)
        if pattern is None or (named and _fits(pattern, named)):
            if rule.decision == "allow" and problems and pattern is not None:
                why = f"{_named(number, rule)} does not cover it: {problems[0]}"
                return Decision("ask", why, danger=danger, asking=number)
            if rule.decision == "allow" and danger is not None and not _is_exactly(rule, named):
                why = f"{_named(number, rule)} does not cover it: {danger}"
                return Decision("ask", why, _prefixes(part, problems), danger, number)
            return Decision(rule.decision, _named(number, rule), _prefixes(part, problems), danger, number)
        if rule.decision != "allow" and problems and _mentioned(pattern, part, line):
            return Decision(rule.decision, f"{_named(number, rule)}, which it mentions", danger=danger, asking=number)
    if problems:
        return Decision("ask", f"no rule can allow it: {problems[0]}", danger=danger)
    if covered:
        return Decision("allow", "allowed for this session", danger=danger)
    if danger is not None:
        return Decision("ask", f"no rule allows exactly this, and {danger}", _prefixes(part, ()), danger)
    if not reads_only(part.argv):
        return Decision("ask", "no rule is about this command", _prefixes(part, ()))
    if not policy.confined:
        return Decision("ask", "nothing is confined here, so reading is asked about", _prefixes(part, ()))
    if follows_links(part.argv):
        return Decision("ask", "it follows links and lists of files, wherever they lead", _prefixes(part, ()))
    outside = next((word for word in part.argv[1:] if place.leaves(word)), None)
    if outside is not None:
        return Decision("ask", f"it would read outside of the session's directory: {outside}", _prefixes(part, ()))
    return Decision("allow", f"default: commands that only read ({program(part.argv)})")


def problems_in(part: Part, place: Place) -> tuple[str, ...]:
    """Why the part's words do not tell what it does."""
    problems = (*part.problems, *problems_of(part.argv)) if part.argv else part.problems
    if part.argv and any_option_reads(part.argv):
        problems = tuple(each for each in problems if each != MAY_BE_OPTION)
    if place.resolved is not None and not place.resolved.is_relative_to(place.cwd):
        problems = (*problems, "it would run outside of the session's directory")
    named = place.git.problem(part.argv) if part.argv and program(part.argv) == "git" else None
    if named is not None:
        problems = (*problems, named)
    for source in part.sources:
        # What only reads may read a file of the session's by this way too; to anything else it may be a program.
        if place.leaves(source) or secret_path(source) or not part.argv or not reads_only(part.argv):
            problems = (*problems, f"it redirects from {source}")
    return problems


def _about(rule: RuleConfig, subject: Subject) -> bool:
    return fnmatchcase(subject.tool, rule.tool)


def _words(argv: Sequence[str]) -> tuple[str, ...]:
    return (program(argv), *argv[1:]) if argv else ()


def _pattern(rule: RuleConfig) -> Sequence[str]:
    """The words that a command must begin with. Those of `argv` are meant as they stand."""
    if rule.argv is not None:
        return [_MAGIC.sub(r"[\1]", word) for word in (program(rule.argv), *rule.argv[1:])]
    return (rule.command or "").split()


def _is_exactly(rule: RuleConfig, words: Sequence[str]) -> bool:
    """Whether a rule says this command and no other: no pattern, and no further words."""
    if rule.argv is not None:
        return tuple(words) == (program(rule.argv), *rule.argv[1:])
    return rule.command is not None and rule.command.split() == list(words)


def _danger(subject: Subject, resolved: Path | None) -> str | None:
    """What is dangerous about a call without a command line.

    A file that credentials are kept in, by its name or by what that leads to; or what a running program is told.
    """
    if subject.typed is not None:
        return danger_mentioned(subject.typed)
    if subject.path is None:
        return None
    secret = secret_path(subject.path) or (resolved is not None and secret_path(str(resolved)))
    return CREDENTIALS if secret else None


def _fits(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether `words` begin as the pattern says. A trailing `*` also stands for no word at all."""
    wanted = pattern[:-1] if pattern[-1] == "*" and len(pattern) > 1 else pattern
    if len(words) < len(wanted):
        return False
    return all(fnmatchcase(word, each) for word, each in zip(words, wanted, strict=False))


def _mentioned(pattern: Sequence[str], part: Part, line: CommandLine) -> bool:
    """Whether a part that hides something names the command anywhere: in its words, or in the text of the line."""
    said = [os.path.basename(word) or word for word in mentions(line.text)]
    candidates = (said, list(part.argv))
    return any(_fits(pattern, words[start:]) for words in candidates for start in range(len(words)))


def _prefixes(part: Part, problems: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What a yes for the session would cover. Nothing by its words when those do not tell what runs."""
    return () if problems or not part.argv else (part.argv,)


def _path_fits(rule: RuleConfig, cwd: Path, resolved: Path | None) -> bool:
    if rule.path is None:
        return True
    if resolved is None:
        return False
    return re.fullmatch(_path_pattern(os.path.normpath(cwd / rule.path)), str(resolved), re.DOTALL) is not None


def _path_pattern(pattern: str) -> str:
    """`**` is any number of directories (and `x/**` also `x` itself), `*` and `?` do not cross a slash."""
    if pattern.endswith("/**"):
        return _path_pattern(pattern[:-3]) + "(?:/.*)?"
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(piece, re.escape(piece)) for piece in pieces)


def _steers_git(resolved: Path, cwd: Path) -> bool:
    """Whether git would read what to run from this file: a configuration, a hook, or part of a bare repository.

    Otherwise a file that may be written and a `git status` that may be run would together run anything at all.
    """
    below = [part.lower() for part in (*cwd.parts, *resolved.relative_to(cwd).parts)]
    configured = any(pair == (".config", "git") for pair in pairwise(below))
    return resolved.name == "HEAD" or configured or not {".git", ".gitconfig"}.isdisjoint(below)


def _named(number: int, rule: RuleConfig) -> str:
    argv = None if rule.argv is None else " ".join(rule.argv)
    command = (("command", rule.command), ("argv", argv))
    keys = (("tool", rule.tool), *command, ("path", rule.path), ("decision", rule.decision))
    return f"approvals.rules[{number}] ({', '.join(f'{key}: {value}' for key, value in keys if value)})"


def _exactly(subject: Subject) -> tuple[str, str]:
    if subject.command is not None:
        return subject.tool, f"{subject.cwd or ''}\0{subject.command}"
    return subject.tool, subject.path or ""
