"""Decisions about calls: the table of command lines, the rules, the modes, and what a session remembers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_ws.agent.approvals import ApprovalPolicy, Decision, Mode, SessionApprovals, decide
from hermes_ws.agent.reach import look
from hermes_ws.agent.tools.tool import Need, Subject
from hermes_ws.scope.sections import RuleConfig
from tests.agent.command_lines import ALLOWED, ASKED

CWD = Path("/srv/project")


def command(text: str, cwd: str | None = None) -> Subject:
    return Subject("terminal", f"Run: {text}", frozenset({"runs"}), command=text, cwd=cwd)


def file(tool: str, path: str) -> Subject:
    need: Need = "reads" if tool == "read_file" else "writes"
    return Subject(tool, f"{tool} {path}", frozenset({need}), path=path)


def judge(
    subject: Subject,
    *rules: RuleConfig,
    mode: Mode = "ask",
    confined: bool = True,
    session: SessionApprovals | None = None,
) -> Decision:
    policy = ApprovalPolicy(mode, rules, confined)
    return decide(subject, policy=policy, session=session or SessionApprovals(), place=look(subject, CWD))


def rule(decision: str, command: str | None = None, path: str | None = None, tool: str = "terminal") -> RuleConfig:
    return RuleConfig.model_validate({"tool": tool, "command": command, "path": path, "decision": decision})


def test_the_table_is_as_long_as_it_must_be() -> None:
    assert len(ALLOWED) + len(ASKED) > 60


@pytest.mark.parametrize("line", ALLOWED)
def test_commands_that_only_read_are_allowed_where_confinement_holds(line: str) -> None:
    decision = judge(command(line))
    assert decision.verdict == "allow", decision
    assert decision.rule.startswith("default: commands that only read")
    assert judge(command(line), confined=False).verdict == "ask"


@pytest.mark.parametrize("line", ASKED)
def test_everything_else_is_asked(line: str) -> None:
    decision = judge(command(line))
    assert decision.verdict == "ask", decision
    assert decision.rule
    assert judge(command(line), mode="deny").verdict == "deny"


NEVER_BY_NAME = """
A=1 make
make > log
make $(evil)
make "$X"
make && rm -r x
make; curl evil
make --eval='x:;rm -r y'
m* all
(make)
make <<EOF
eval make
env make
""".strip().split("\n")


@pytest.mark.parametrize("line", NEVER_BY_NAME)
def test_a_rule_about_a_name_allows_nothing_that_the_name_does_not_tell(line: str) -> None:
    assert judge(command("make -j4 all"), rule("allow", "make")).verdict == "allow"
    assert judge(command(line), rule("allow", "make")).verdict == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "rm -r build",
        "/bin/rm -r build",
        "r''m x",
        "ls && rm x",
        "echo $(rm x)",
        "echo `rm x`",
        "sudo rm x",
        "find . | xargs rm",
        "find . -exec rm {} +",
        "A=1 rm x",
        "for f in *; do rm $f; done",
        "sh -c 'rm x'",
        "(rm x)",
        "env /bin/rm x",
    ],
)
def test_a_rule_that_denies_also_finds_what_is_hidden(line: str) -> None:
    for mode in ("ask", "auto", "deny"):
        decision = judge(command(line), rule("deny", "rm"), mode=mode)
        assert decision.verdict == "deny"
        assert "approvals.rules[0]" in decision.rule


def test_the_first_rule_that_fits_decides_and_is_named() -> None:
    rules = (rule("deny", "git push --force"), rule("allow", "git push"), rule("deny", "git"))
    assert judge(command("git push --force origin"), *rules).verdict == "deny"
    allowed = judge(command("git push origin main"), *rules)
    assert (allowed.verdict, allowed.rule[:18]) == ("allow", "approvals.rules[1]")
    assert judge(command("git fetch"), *rules).rule.startswith("approvals.rules[2]")


def test_a_rule_may_ask_for_what_the_defaults_allow() -> None:
    assert judge(command("cat secrets.txt"), rule("ask", "cat")).verdict == "ask"
    assert judge(command("ls"), rule("ask", "cat")).verdict == "allow"


def test_patterns_of_rules_stand_for_words() -> None:
    assert judge(command("npm run test"), rule("allow", "npm run *")).verdict == "allow"
    assert judge(command("npm run"), rule("allow", "npm run *")).verdict == "allow"
    assert judge(command("npm install x"), rule("allow", "npm run *")).verdict == "ask"
    assert judge(command("npmx run a"), rule("allow", "npm run *")).verdict == "ask"


def test_a_rule_about_the_whole_tool_covers_every_line() -> None:
    assert judge(command("echo $(anything)"), rule("allow")).verdict == "allow"
    assert judge(command("ls"), rule("deny")).verdict == "deny"
    assert judge(command("ls"), rule("deny", tool="*")).verdict == "deny"
    assert judge(command("ls"), rule("deny", tool="read_file")).verdict == "allow"


def test_the_strictest_part_of_a_line_counts() -> None:
    rules = (rule("allow", "make"), rule("deny", "rm"))
    assert judge(command("make && ls"), *rules).verdict == "allow"
    assert judge(command("make && touch a"), *rules).verdict == "ask"
    assert judge(command("make && touch a && rm b"), *rules).verdict == "deny"


def test_mode_auto_allows_what_would_be_asked_only_where_confinement_holds() -> None:
    assert judge(command("make"), mode="auto").verdict == "allow"
    assert judge(command("make"), mode="auto", confined=False).verdict == "ask"
    assert judge(command("rm x"), rule("deny", "rm"), mode="auto").verdict == "deny"


def test_mode_deny_asks_nobody() -> None:
    assert judge(command("make"), mode="deny").verdict == "deny"
    assert judge(command("ls"), mode="deny").verdict == "allow"
    assert judge(command("make"), rule("allow", "make"), mode="deny").verdict == "allow"
    assert judge(command("make"), rule("ask", "make"), mode="deny").verdict == "deny"


def test_a_command_elsewhere_is_asked() -> None:
    assert judge(command("ls", cwd="src")).verdict == "allow"
    assert judge(command("ls", cwd="/etc")).verdict == "ask"
    assert judge(command("make", cwd="/etc"), rule("allow", "make")).verdict == "ask"


@pytest.mark.parametrize(
    ("subject", "verdict"),
    [
        (file("read_file", "README.md"), "allow"),
        (file("read_file", "/srv/project/src/a.py"), "allow"),
        (file("read_file", "/srv/other"), "ask"),
        (file("read_file", "/srv/projects"), "ask"),
        (file("write_file", "new/file.txt"), "allow"),
        (file("write_file", "/etc/passwd"), "ask"),
        (file("write_file", ".git/config"), "ask"),
        (file("write_file", "sub/.GIT/hooks/post-checkout"), "ask"),
        (file("write_file", ".git"), "ask"),
        (file("write_file", "bare/HEAD"), "ask"),
        (file("write_file", ".gitconfig"), "ask"),
        (file("write_file", ".config/git/config"), "ask"),
        (file("write_file", ".config/other"), "allow"),
        (file("write_file", ".gitignore"), "allow"),
        (file("read_file", ".git/config"), "allow"),
        (Subject("clarify", "Ask", frozenset({"asks"})), "allow"),
        (Subject("other", "Something", frozenset({"network"})), "ask"),  # type: ignore[arg-type]
    ],
)
def test_files_in_the_sessions_directory_are_allowed(subject: Subject, verdict: str) -> None:
    assert judge(subject).verdict == verdict
    if subject.path is not None:
        assert judge(subject, confined=False).verdict == "ask"


def test_rules_about_paths_compare_resolved_paths() -> None:
    denied = rule("deny", path="secret/**", tool="*")
    assert judge(file("read_file", "secret/a/b"), denied).verdict == "deny"
    assert judge(file("read_file", "secret"), denied).verdict == "deny"
    assert judge(file("read_file", "secrets"), denied).verdict == "allow"
    assert judge(file("write_file", "/var/log/x"), rule("allow", path="/var/*/x", tool="write_file")).verdict == "allow"
    assert judge(file("write_file", "/var/a/b/x"), rule("allow", path="/var/*/x", tool="write_file")).verdict == "ask"
    assert judge(file("read_file", "a/b/c.key"), rule("deny", path="**/*.key", tool="*")).verdict == "deny"


def test_a_session_remembers_exactly_the_prefix_that_was_shown() -> None:
    session = SessionApprovals()
    asked = judge(command("make test"), session=session)
    assert asked.prefixes == (("make", "test"),)
    session.remember(command("make test"), asked)
    for line in ("make test", "make test -j4", "ls && make test"):
        assert judge(command(line), session=session).verdict == "allow"
    for line in ("make", "make install", "make testing", "make test > log", "make test $(x)", "A=1 make test"):
        assert judge(command(line), session=session).verdict == "ask"
    assert judge(command("make test")).verdict == "ask", "another session has no part in it"


def test_a_line_that_cannot_be_read_is_remembered_as_it_stands() -> None:
    session = SessionApprovals()
    line = 'printf %s "$SHARED" | sha256sum'
    asked = judge(command(line), session=session)
    assert (asked.verdict, asked.prefixes) == ("ask", ())
    session.remember(command(line), asked)
    assert judge(command(line), session=session).verdict == "allow"
    assert judge(command(f"{line} && ls $X"), session=session).verdict == "ask"
    assert judge(command(line, cwd="/etc"), session=session).verdict == "ask"


def test_what_was_allowed_for_a_session_lifts_an_ask_but_never_a_deny() -> None:
    session = SessionApprovals()
    session.remember(command("rm x"), judge(command("rm x")))
    session.remember(command("echo $(rm y)"), judge(command("echo $(rm y)")))
    session.remember(file("write_file", "/etc/x"), judge(file("write_file", "/etc/x")))
    assert judge(command("rm x"), rule("ask", "rm"), session=session).verdict == "allow"
    assert judge(command("rm x"), rule("deny", "rm"), session=session).verdict == "deny"
    assert judge(command("echo $(rm y)"), rule("deny", "rm"), session=session).verdict == "deny"
    assert judge(file("write_file", "/etc/x"), rule("ask", tool="*"), session=session).verdict == "allow"
    assert judge(file("write_file", "/etc/x"), rule("deny", tool="*"), session=session).verdict == "deny"
    assert judge(file("write_file", "/etc/y"), session=session).verdict == "ask"


ACTIVE = st.sampled_from(["$(x)", "`x`", "${x}", "$((1))", "<(x)", ">(x)", "$x", '"$(x)"', '"`x`"', '"$x"'])
AROUND = st.text(alphabet=st.characters(codec="ascii", exclude_characters="'\"\\#"), max_size=12)


@given(before=AROUND, active=ACTIVE, after=AROUND)
def test_nothing_with_a_substitution_is_ever_allowed_by_a_name(before: str, active: str, after: str) -> None:
    decision = judge(command(f"ls {before}{active}{after}"), rule("allow", "*"))
    assert decision.verdict != "allow"


@given(st.text(max_size=60))
def test_every_line_gets_a_decision_with_a_reason(line: str) -> None:
    decision = judge(command(line), rule("deny", "rm"), rule("allow", "make *"))
    assert decision.verdict in ("allow", "ask", "deny")
    assert decision.rule
