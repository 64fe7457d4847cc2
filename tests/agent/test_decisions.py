"""The table of command lines with the decisions that are expected, and what dangers do to permissions."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from hermes_ws.agent import dangers
from hermes_ws.agent.approvals import ApprovalPolicy, Decision, SessionApprovals, decide, judged_parts
from hermes_ws.agent.permanent import rules_for
from hermes_ws.agent.reach import Place, look
from hermes_ws.agent.tools.tool import Subject
from hermes_ws.scope.sections import RuleConfig

CWD = Path("/srv/project")
KINDS: Final = MappingProxyType(
    {
        "-": None,
        "deletes": dangers.DELETES,
        "privileges": dangers.PRIVILEGES,
        "network": dangers.NETWORK,
        "credentials": dangers.CREDENTIALS,
        "history": dangers.HISTORY,
    }
)


def table() -> list[tuple[str, str | None, str]]:
    rows: list[tuple[str, str | None, str]] = []
    for row in (Path(__file__).parent / "decisions.txt").read_text(encoding="utf-8").splitlines():
        if row and not row.startswith("#"):
            verdict, kind, line = row[:5].strip(), row[6:17].strip(), row[18:]
            rows.append((verdict, KINDS[kind], line.encode("latin-1").decode("unicode_escape")))
    return rows


TABLE = table()


def command(line: str) -> Subject:
    return Subject("terminal", f"Run: {line}", frozenset({"runs"}), command=line)


def judge(subject: Subject, policy: ApprovalPolicy, session: SessionApprovals | None = None) -> Decision:
    return decide(subject, policy=policy, session=session or SessionApprovals(), place=look(subject, CWD))


def rule(decision: str, **about: object) -> RuleConfig:
    return RuleConfig.model_validate({"tool": "terminal", "decision": decision, **about})


def test_the_table_is_long_enough_and_has_each_kind() -> None:
    assert len(TABLE) >= 300
    assert {kind for _, kind, _ in TABLE} == set(KINDS.values())
    assert len({line for _, _, line in TABLE}) == len(TABLE)


@pytest.mark.parametrize(("verdict", "kind", "line"), TABLE, ids=[repr(line) for _, _, line in TABLE])
def test_each_line_of_the_table_is_decided_as_it_says(verdict: str, kind: str | None, line: str) -> None:
    asked = judge(command(line), ApprovalPolicy("ask", (), confined=True))
    assert (asked.verdict, asked.danger) == (verdict, kind), asked
    auto = judge(command(line), ApprovalPolicy("auto", (), confined=True))
    assert auto.verdict == ("allow" if kind is None else "ask")
    denied = judge(command(line), ApprovalPolicy("deny", (), confined=True))
    assert denied.verdict == ("allow" if verdict == "allow" else "deny")
    yolo = judge(command(line), ApprovalPolicy("ask", (), confined=True, yolo=True))
    assert yolo.verdict == "allow"
    # Where nothing is confined nothing is allowed by default, and `auto` is no permission.
    for mode in ("ask", "auto"):
        assert judge(command(line), ApprovalPolicy(mode, (), confined=False)).verdict == "ask"


@pytest.mark.parametrize("line", [line for _, kind, line in TABLE if kind is not None])
def test_no_pattern_allows_what_is_dangerous(line: str) -> None:
    for broad in (rule("allow", tool="*"), rule("allow", command="*"), rule("allow", command="git *")):
        assert judge(command(line), ApprovalPolicy("ask", (broad,), confined=True)).verdict == "ask"


@pytest.mark.parametrize("line", [line for _, kind, line in TABLE if kind is not None])
def test_dangers_can_be_left_to_the_rules(line: str) -> None:
    policy = ApprovalPolicy("auto", (), confined=True, dangers=False)
    assert judge(command(line), policy).verdict == "allow"


@pytest.mark.parametrize("line", [line for _, _, line in TABLE])
def test_a_rule_that_denies_holds_in_every_mode_and_for_yolo(line: str) -> None:
    for mode in ("ask", "auto", "deny"):
        policy = ApprovalPolicy(mode, (rule("deny", tool="*"),), confined=True, yolo=True)
        assert judge(command(line), policy).verdict == "deny"


@pytest.mark.parametrize("line", [line for _, _, line in TABLE])
def test_what_always_writes_allows_the_line_again_and_no_more_than_was_shown(line: str) -> None:
    asked = judge(command(line), ApprovalPolicy("ask", (), confined=True))
    rules = rules_for(command(line), asked, None)
    assert bool(rules) == bool(asked.prefixes)
    if rules:
        policy = ApprovalPolicy("ask", rules, confined=True)
        assert judge(command(line), policy).verdict == "allow"
        assert judge(command(f"{line} $(evil)"), policy).verdict == "ask"
        # A longer one is covered by its first words, unless it is dangerous: then exactly this was shown.
        longer = judge(command(f"{line} further"), policy)
        assert longer.verdict == ("allow" if asked.danger is None else "ask")


def test_an_exact_rule_allows_what_is_dangerous_and_nothing_longer() -> None:
    for about in ({"argv": ["rm", "-rf", "build"]}, {"command": "rm -rf build"}):
        policy = ApprovalPolicy("ask", (rule("allow", **about),), confined=True)
        assert judge(command("rm -rf build"), policy).verdict == "allow"
        assert judge(command("/bin/rm -rf build"), policy).verdict == "allow"
        asked = judge(command("rm -rf build /"), policy)
        assert (asked.verdict, asked.asking) == ("ask", 0)


def test_a_yes_for_the_session_covers_exactly_what_is_dangerous() -> None:
    session, policy = SessionApprovals(), ApprovalPolicy("ask", (), confined=True)
    for line in ("rm -rf build", "make test"):
        session.remember(command(line), judge(command(line), policy))
    assert judge(command("make test -j4"), policy, session).verdict == "allow"
    assert judge(command("rm -rf build"), policy, session).verdict == "allow"
    assert judge(command("rm -rf build /"), policy, session).verdict == "ask"


def test_words_of_argv_are_no_patterns() -> None:
    policy = ApprovalPolicy("ask", (rule("allow", argv=["make", "a*", "[b]", "c d"]),), confined=True)
    assert judge(command("make 'a*' '[b]' 'c d'"), policy).verdict == "allow"
    assert judge(command("make abc '[b]' 'c d'"), policy).verdict == "ask"
    assert judge(command("make 'a*' b 'c d'"), policy).verdict == "ask"


def test_a_danger_can_always_be_denied_by_a_rule_before_it_is_asked() -> None:
    policy = ApprovalPolicy("ask", (rule("deny", command="rm *"),), confined=True)
    assert judge(command("rm -rf build"), policy).verdict == "deny"


@pytest.mark.parametrize("path", [".env", "sub/.env.local", ".ssh/config", "keys/id_rsa", ".git-credentials"])
@pytest.mark.parametrize("tool", ["read_file", "write_file", "patch"])
def test_files_with_credentials_are_asked_also_within_the_directory(path: str, tool: str) -> None:
    subject = Subject(tool, f"{tool} {path}", frozenset({"reads"}), path=path)
    for policy in (
        ApprovalPolicy("ask", (), confined=True),
        ApprovalPolicy("auto", (), confined=True),
        ApprovalPolicy("ask", (rule("allow", tool="*"),), confined=True),
        ApprovalPolicy("ask", (rule("allow", tool=tool, path="**"),), confined=True),
    ):
        found = judge(subject, policy)
        assert (found.verdict, found.danger) == ("ask", dangers.CREDENTIALS)
    exact = ApprovalPolicy("ask", (rule("allow", tool=tool, path=path),), confined=True)
    assert judge(subject, exact).verdict == "allow"


def test_a_link_to_credentials_counts_as_what_it_leads_to() -> None:
    subject = Subject("read_file", "Read notes", frozenset({"reads"}), path="notes")
    policy = ApprovalPolicy("ask", (), confined=True)
    found = decide(subject, policy=policy, session=SessionApprovals(), place=Place(CWD, CWD / ".env"))
    assert (found.verdict, found.danger) == ("ask", dangers.CREDENTIALS)


def test_examples_of_env_files_hold_no_secrets() -> None:
    subject = Subject("read_file", "Read it", frozenset({"reads"}), path=".env.example")
    assert judge(subject, ApprovalPolicy("ask", (), confined=True)).verdict == "allow"


def test_the_parts_of_a_line_are_explained_one_by_one() -> None:
    policy = ApprovalPolicy("ask", (rule("allow", command="make *"),), confined=True)
    parts = judged_parts(command("ls && make all; rm x"), policy=policy, session=SessionApprovals(), place=Place(CWD))
    assert [(part.argv, found.verdict) for part, found in parts] == [
        (("ls",), "allow"),
        (("make", "all"), "allow"),
        (("rm", "x"), "ask"),
    ]
    assert parts[2][1].danger == dangers.DELETES
    assert (
        judged_parts(Subject("todo", "", frozenset()), policy=policy, session=SessionApprovals(), place=Place(CWD))
        == ()
    )
