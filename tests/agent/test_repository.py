"""What a repository has git run, read from what git tells of it."""

from __future__ import annotations

import pytest

from hermes_ws.agent.deeds import Ran
from hermes_ws.agent.repository import RepositoryPrograms, programs_of, read, uses_git
from hermes_ws.contract.errors import DirectoryRefused
from tests.agent.twins import HandsTwin


def told(*pieces: str) -> str:
    return "".join(f"{piece}\0" for piece in (*pieces, "done"))


def own(*settings: str) -> tuple[str, ...]:
    return tuple(piece for setting in settings for piece in ("local", setting))


@pytest.mark.parametrize(
    ("pieces", "reading", "everything"),
    [
        ((), (), ()),
        (own("core.fsmonitor\nevil"), ("core.fsmonitor",), ("core.fsmonitor",)),
        (own("core.fsmonitor\ntrue", "core.fsmonitor", "pager.log\nfalse"), (), ()),
        (own("pager.log\nless"), ("pager.log",), ("pager.log",)),
        (("worktree", "diff.external\nevil"), ("diff.external",), ("diff.external",)),
        (("global", "diff.external\nmine", "system", "core.pager\nless", "command", "gpg.program\nx"), (), ()),
        # No sign in a name hides it.
        (own("filter.a b.clean\nevil"), ("filter.a b.clean",), ("filter.a b.clean",)),
        (own("filter.a\u2028\r.clean\nevil"), ("filter.a\u2028\r.clean",), ("filter.a\u2028\r.clean",)),
        (("local", "diff.local.textconv\nlocal"), ("diff.local.textconv",), ("diff.local.textconv",)),
        # What is for other commands is no ground to ask about one that reads.
        (own("core.editor\nvi", "merge.x.driver\ny"), (), ("core.editor", "merge.x.driver")),
        (("hook pre-commit",), (), ("the hook pre-commit",)),
        (("hook post-index-change",), ("the hook post-index-change",), ("the hook post-index-change",)),
        # A repository that has only a part of itself fetches the rest for whoever reads.
        (own("remote.origin.uploadpack\nevil"), (), ("remote.origin.uploadpack",)),
        (
            own("remote.origin.promisor\ntrue", "remote.origin.uploadpack\nevil"),
            ("remote.origin.uploadpack",),
            ("remote.origin.uploadpack",),
        ),
        (own("remote.origin.promisor\ntrue"), (), ()),
        (("unknown its settings",), ("its settings cannot be told",), ("its settings cannot be told",)),
    ],
)
def test_what_git_tells_is_read(pieces: tuple[str, ...], reading: tuple[str, ...], everything: tuple[str, ...]) -> None:
    assert read(told(*pieces)) == RepositoryPrograms(reading, everything)


@pytest.mark.parametrize("cut", ["", "local\0", told(*own("alias.x\ny"))[:-6]])
def test_half_an_answer_is_none(cut: str) -> None:
    assert read(cut).reading == ("its settings cannot be told",)


def test_a_person_is_told_some_of_the_names() -> None:
    many = RepositoryPrograms(("one",), ("one", "two", "three", "four", "five"))
    assert many.problem(["git", "status"]) == "the repository itself names programs that git runs: one"
    assert (many.problem(["git", "commit"]) or "").endswith("one, two, three and 2 more")
    assert RepositoryPrograms((), ("one",)).problem(["/usr/bin/git", "log"]) is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [("ls | wc -l && git log", True), ("/usr/bin/git log", True), ("echo git", False), (None, False)],
)
def test_a_line_is_looked_through_for_git(line: str | None, expected: bool) -> None:
    assert uses_git(line) is expected


@pytest.mark.parametrize("ended", [{"exit_code": 1}, {"truncated": True}, {"timed_out": True}, None])
async def test_what_cannot_be_found_out_counts_as_named(ended: dict[str, object] | None) -> None:
    class Hands(HandsTwin):
        async def run(self, *args: object, **options: object) -> Ran:
            if ended is None:
                raise DirectoryRefused("Not there.")
            whole = {"exit_code": 0, "signal": None, "timed_out": False, "truncated": False}
            return Ran(**{**whole, "output": told(), "duration_ms": 1, **ended})  # pyright: ignore[reportArgumentType]

    assert (await programs_of(Hands(), None)).reading
