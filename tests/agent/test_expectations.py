"""Decisions that were expected of the rules before the program was asked, in a directory with links that lead out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hermes_ws.agent.approvals import ApprovalPolicy, Decision, SessionApprovals, decide
from hermes_ws.agent.commandline import mentions, parse
from hermes_ws.agent.reach import look
from hermes_ws.agent.tools.tool import Subject
from hermes_ws.scope.sections import RuleConfig


def table() -> list[tuple[str, str, str]]:
    rows = (Path(__file__).parent / "expectations.txt").read_text(encoding="utf-8").splitlines()
    return [
        (row[:7].strip(), row[8:14].strip(), row[15:].encode("latin-1").decode("unicode_escape"))
        for row in rows
        if row and not row.startswith("#")
    ]


TABLE: Final = table()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("session").resolve() / "project"
    (made / "src").mkdir(parents=True)
    for name in ("README.md", "a b.txt", "src/main.py"):
        (made / name).write_text("text\n", encoding="utf-8")
    for name, target in (("link_in", "src"), ("link_out", "/etc"), ("key", "/etc/hostname")):
        (made / name).symlink_to(target)
    return made


def judge(line: str, directory: Path, *rules: RuleConfig) -> Decision:
    subject = Subject("terminal", f"Run: {line!r}", frozenset({"runs"}), command=line)
    policy = ApprovalPolicy("ask", rules, confined=True)
    return decide(subject, policy=policy, session=SessionApprovals(), place=look(subject, directory))


def by_name(line: str) -> tuple[RuleConfig, ...]:
    """Rules that allow every program that the line could possibly run, by its name, whatever its arguments."""
    said = {*mentions(line), *(part.argv[0] for part in parse(line).parts if part.argv)}
    written = (word.replace("[", "?") for word in said if word and not set(word) & set(" \t\n"))
    return tuple(RuleConfig(tool="terminal", command=f"{word} *", decision="allow") for word in written)


def test_the_table_has_lines_of_each_kind() -> None:
    assert len(TABLE) >= 750
    assert {default for default, _, _ in TABLE} == {"allow", "ask", "either"}
    assert {named for _, named, _ in TABLE} == {"allow", "ask", "-"}


@pytest.mark.parametrize(("expected", "line"), [(each, line) for each, _, line in TABLE if each != "either"], ids=ascii)
def test_without_rules_it_is_decided_as_expected(expected: str, line: str, directory: Path) -> None:
    found = judge(line, directory)
    assert found.verdict == expected, found


@pytest.mark.parametrize(("expected", "line"), [(each, line) for _, each, line in TABLE if each != "-"], ids=ascii)
def test_a_rule_about_names_allows_what_the_names_tell_and_nothing_else(
    expected: str, line: str, directory: Path
) -> None:
    found = judge(line, directory, *by_name(line))
    assert found.verdict == expected, found


def test_what_lies_outside_is_named_and_may_be_allowed_for_good(directory: Path) -> None:
    found = judge("cat README.md link_out/passwd", directory)
    assert "link_out/passwd" in found.rule
    assert found.prefixes == (("cat", "README.md", "link_out/passwd"),)
    rule = RuleConfig(tool="terminal", argv=found.prefixes[0], decision="allow")
    assert judge("cat README.md link_out/passwd", directory, rule).verdict == "allow"


def test_a_command_in_a_directory_below_is_judged_from_there(directory: Path) -> None:
    for line, expected in (("cat ../README.md", "allow"), ("cat ../../x", "ask"), ("cat main.py", "allow")):
        subject = Subject("terminal", line, frozenset({"runs"}), command=line, cwd="src")
        policy = ApprovalPolicy("ask", (), confined=True)
        found = decide(subject, policy=policy, session=SessionApprovals(), place=look(subject, directory))
        assert found.verdict == expected, line


def test_a_pattern_that_stands_for_too_much_to_follow_counts_as_outside(directory: Path) -> None:
    many = directory / "src" / "many"
    many.mkdir()
    for number in range(2001):
        (many / f"{number}.txt").touch()
    assert judge("cat src/many/1.txt", directory).verdict == "allow"
    assert judge("cat src/many/*.txt", directory).verdict == "ask"
    assert judge("cat src/many/1*.txt", directory).verdict == "allow"


def test_a_file_called_like_an_option_is_no_option_of_anybody(directory: Path) -> None:
    (directory / "src" / "opts").mkdir()
    (directory / "src" / "opts" / "a").touch()
    assert judge("grep x src/opts/*", directory).verdict == "allow"
    (directory / "src" / "opts" / "-f").touch()
    assert judge("grep x src/opts/*", directory).verdict == "ask"


@pytest.mark.parametrize("tool", ["read_file", "write_file"])
def test_two_dots_after_a_link_mean_what_the_tools_take_them_for(tool: str, directory: Path) -> None:
    # The tools drop `deep/..` by its name and would reach README.md, or the neighbour of the directory.
    (directory / "deep").symlink_to("src") if not (directory / "deep").is_symlink() else None
    need = "reads" if tool == "read_file" else "writes"
    for path, expected in (("deep/../README.md", "allow"), ("deep/../../neighbour", "ask"), ("key", "ask")):
        subject = Subject(tool, path, frozenset({need}), path=path)
        policy = ApprovalPolicy("ask", (), confined=True)
        found = decide(subject, policy=policy, session=SessionApprovals(), place=look(subject, directory))
        assert found.verdict == expected, path


@pytest.mark.parametrize(
    "path", ["AGENTS.md", "src/CLAUDE.md", ".cursorrules", "src/agents.md", "src/rules", "src/.cursor/rules/a.mdc"]
)
def test_rules_for_agents_may_be_read_and_are_asked_about_before_they_are_written(path: str, directory: Path) -> None:
    link = directory / "src" / "rules"
    if not link.is_symlink():
        link.symlink_to("../AGENTS.md")
    policy = ApprovalPolicy("ask", (), confined=True)
    for tool, need, expected in (
        ("read_file", "reads", "allow"),
        ("patch", "writes", "ask"),
        ("write_file", "writes", "ask"),
    ):
        subject = Subject(tool, path, frozenset({need}), path=path)
        found = decide(subject, policy=policy, session=SessionApprovals(), place=look(subject, directory))
        assert found.verdict == expected, tool


def test_paths_of_another_machine_are_not_looked_up_on_this_one(directory: Path) -> None:
    for line, expected in (("cat link_out/passwd", "allow"), ("cat ../x", "ask"), ("cat src/*", "allow")):
        subject = Subject("terminal", line, frozenset({"runs"}), command=line)
        policy = ApprovalPolicy("ask", (), confined=True)
        place = look(subject, directory, here=False)
        assert decide(subject, policy=policy, session=SessionApprovals(), place=place).verdict == expected, line


def test_what_a_running_program_is_told_is_searched_for_dangers() -> None:
    policy = ApprovalPolicy("auto", (RuleConfig(tool="process", decision="allow"),), confined=True)
    for text, expected in (("rm -rf build\n", "ask"), ("make\n", "allow")):
        subject = Subject("process", "Write", frozenset({"runs"}), typed=text)
        found = decide(subject, policy=policy, session=SessionApprovals(), place=look(subject, Path("/srv")))
        assert found.verdict == expected, text
