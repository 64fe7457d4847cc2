"""A repository that brings settings of its own: a git command that needs no approval runs none of what they name."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from hermes_ws.contract.methods.approvals import ExplainParams
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.session.explaining import explain
from tests.session.house import OWNER, House, People, new_session, say

ALLOWED: Final = """\
approvals:
  git_programs: {programs}
  rules:
    - {{tool: terminal, command: "git *", decision: allow}}
"""

LOOK: Final = "/do run git status && git diff"

TRAPS: Final = ("monitor", "drawn", "read", "cleaned", "written", "within")
"""What each part of the repository has git run, each leaving a file of this name."""


def git(directory: Path, *words: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgSign=false")
    subprocess.run(["git", *identity, *words], cwd=directory, check=True, capture_output=True)


def repository(directory: Path) -> Path:
    """A repository with one commit, and a change in each of its files."""
    git(directory, "init", "--quiet", ".")
    for name in ("a.txt", "b.pic", "c.raw", "d.txt"):
        (directory / name).write_text("before\n")
    git(directory, "add", ".")
    git(directory, "commit", "--quiet", "-m", "first")
    for name in ("a.txt", "b.pic", "c.raw"):
        (directory / name).write_text("after\n")
    return directory


def with_traps(directory: Path) -> Path:
    """The same with programs at every place where git takes one for what only reads."""

    def program(name: str) -> str:
        path = directory / ".git" / f"run-{name}"
        path.write_text(f'#!/bin/sh\n: > "{directory}/ran-{name}"\nexec cat\n')
        path.chmod(0o755)
        return str(path)

    inner = directory / "inner repository"
    inner.mkdir(parents=True)
    git(inner, "init", "--quiet", ".")
    git(inner, "commit", "--quiet", "--allow-empty", "-m", "first")
    repository(directory)
    (directory / ".gitattributes").write_text("*.txt diff=drawn\n*.pic diff=read\n*.raw filter=cleaned\n")
    git(directory, "config", "include.path", "more")
    git(directory, "config", "--file", ".git/more", "core.fsmonitor", program("monitor"))
    git(directory, "config", "diff.drawn.command", program("drawn"))
    git(directory, "config", "diff.read.textconv", program("read"))
    git(directory, "config", "filter.cleaned.clean", program("cleaned"))
    hook = directory / ".git" / "hooks" / "post-index-change"
    hook.write_text(Path(program("written")).read_text())
    hook.chmod(0o755)
    git(inner, "config", "core.fsmonitor", program("within"))
    (directory / "d.txt").touch()
    for each in directory.glob("ran-*"):
        each.unlink()
    return directory


def ran(directory: Path) -> set[str]:
    return {each.name.removeprefix("ran-") for each in directory.glob("ran-*")}


async def test_what_a_repository_has_git_run_is_asked_about_also_where_git_is_allowed(
    house: House, people: People, tmp_path: Path
) -> None:
    house.home("default", config=ALLOWED.format(programs="ask"))
    house.home("trusting", config=ALLOWED.format(programs="trusted"))
    made = {name: tmp_path / name for name in ("plain", "trapped", "trusted")}
    for each in made.values():
        each.mkdir()
    repository(made["plain"])
    with_traps(made["trapped"])
    with_traps(made["trusted"])
    async with house.served():
        trusting, careful = await house.runtime("trusting"), await house.runtime()
        # Each of them does run, where the profile says that it may.
        _, thread, viewer = await new_session(trusting, cwd=str(made["trusted"]))
        await say(thread, LOOK, "one")
        await viewer.until("execution.finished", outcome="completed")
        assert ran(made["trusted"]) == set(TRAPS)
        # A repository that names nothing is not asked about.
        _, thread, viewer = await new_session(careful, cwd=str(made["plain"]))
        await say(thread, LOOK, "one")
        assert "+after" in (await viewer.until("tool.complete"))["payload"]["output"]
        assert people.asked == []
        session, thread, viewer = await new_session(careful, cwd=str(made["trapped"]))
        await say(thread, LOOK, "one")
        question = await people.question(0)
        assert "the repository itself names programs that git runs: " in question.params["rule"]
        assert question.params["choices"] == ["once", "session", "deny"], "no rule could allow it for good"
        answer = AnswerParams.model_validate({"id": question.id, "result": {"choice": "deny"}})
        await careful.sessions.answer(answer, OWNER)
        await viewer.until("execution.finished", outcome="completed")
        assert ran(made["trapped"]) == set()
        asked = ExplainParams(session_id=session.session_id, command="git log; git commit -m x")
        reading, other = (await explain(careful, session, asked)).parts
        for name in ("core.fsmonitor", "diff.drawn.command", "and 2 more"):
            assert name in reading.rule
        assert reading.problems == other.problems
        assert ran(made["trapped"]) == set()
