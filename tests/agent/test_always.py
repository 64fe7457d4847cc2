"""The choices of an approval: what each covers, and what `always` has written down."""

from __future__ import annotations

from typing import Any

from hermes_ws.agent.approvals import ApprovalPolicy
from hermes_ws.agent.models.model import TextPiece
from hermes_ws.contract.errors import ProfileUnusable
from hermes_ws.scope.sections import RuleConfig
from tests.agent.scene import Replies, Scene, call, done
from tests.agent.twins import ALWAYS, DIRECTORY, NO, ONCE, AskerTwin, HandsTwin, RuleBookTwin, request


def rule(decision: str, **about: Any) -> RuleConfig:
    return RuleConfig.model_validate({"tool": "terminal", "decision": decision, **about})


async def run(scene: Scene, *commands: str, policy: ApprovalPolicy | None = None) -> None:
    calls = [call("terminal", f"c{number}", command=each) for number, each in enumerate(commands)]
    await scene.run(request("go", policy=policy), Replies([*calls, *done("tool_calls")], [TextPiece("ok"), *done()]))


async def test_always_writes_the_words_that_were_shown_before_the_rule_that_asked() -> None:
    book, rules = RuleBookTwin(), (rule("deny", command="git push --force"), rule("ask", command="git *"))
    scene = Scene(asker=AskerTwin(ALWAYS), rulebook=book)
    policy = ApprovalPolicy("ask", rules, True, git_programs="trusted")
    await run(scene, "git push origin 'a b'", "git push origin 'a b' c", policy=policy)
    [question] = scene.asker.approvals
    assert question.choices == ["once", "session", "always", "deny"]
    assert "For the session or always: every command that begins with `git push origin 'a b'`." in question.description
    assert book.added == [((rule("allow", argv=["git", "push", "origin", "a b"]),), rules[1])]
    # It counts at once: the second call was not asked.
    assert [command for command, _, _ in scene.hands.ran] == ["git push origin 'a b'", "git push origin 'a b' c"]


async def test_always_on_several_parts_writes_a_rule_for_each() -> None:
    book = RuleBookTwin()
    scene = Scene(asker=AskerTwin(ALWAYS), rulebook=book)
    await run(scene, "make && make install && ls")
    assert book.added == [((rule("allow", argv=["make"]), rule("allow", argv=["make", "install"])), None)]


async def test_what_is_dangerous_says_so_and_is_remembered_exactly() -> None:
    scene = Scene(asker=AskerTwin(ALWAYS, NO), rulebook=RuleBookTwin())
    await run(scene, "rm -rf build", "rm -rf build", "rm -rf build src")
    first, second = scene.asker.approvals
    assert "Take care: it deletes." in first.description
    assert "exactly `rm -rf build`" in first.description
    assert second.command == "rm -rf build src"
    assert [command for command, _, _ in scene.hands.ran] == ["rm -rf build", "rm -rf build"]


async def test_a_line_that_hides_what_it_runs_has_no_always() -> None:
    scene = Scene(asker=AskerTwin(ONCE), rulebook=RuleBookTwin())
    await run(scene, "sh -c 'make'")
    [question] = scene.asker.approvals
    assert question.choices == ["once", "session", "deny"]
    assert "For the session: exactly this again." in question.description


async def test_always_on_a_file_is_about_this_file() -> None:
    book = RuleBookTwin()
    scene = Scene(hands=HandsTwin(files={"/etc/motd": "hi"}), asker=AskerTwin(ALWAYS), rulebook=book)
    model = Replies([call("read_file", path="/etc/motd"), *done("tool_calls")], [TextPiece("ok"), *done()])
    await scene.run(request("go"), model)
    assert book.added == [((RuleConfig(tool="read_file", path="/etc/motd", decision="allow"),), None)]


async def test_a_path_that_would_be_a_pattern_has_no_always() -> None:
    scene = Scene(hands=HandsTwin(), asker=AskerTwin(NO), rulebook=RuleBookTwin())
    model = Replies([call("read_file", path="/etc/what?"), *done("tool_calls")], [TextPiece("ok"), *done()])
    await scene.run(request("go"), model)
    assert "always" not in scene.asker.approvals[0].choices


async def test_without_a_rule_book_there_is_no_always() -> None:
    scene = Scene(asker=AskerTwin(ONCE))
    await run(scene, "make")
    assert "always" not in scene.asker.approvals[0].choices


async def test_a_rule_that_cannot_be_written_is_told_and_holds_for_the_session() -> None:
    book = RuleBookTwin(ProfileUnusable("config.yaml cannot be read.", hint="Mend it."))
    scene = Scene(asker=AskerTwin(ALWAYS), rulebook=book)
    await run(scene, "make", "make")
    [(level, kind, said, hint)] = scene.narrator.all("notice")
    assert (level, kind, hint) == ("warning", "rule_not_written", "Mend it.")
    assert "config.yaml cannot be read." in said
    assert len(scene.hands.ran) == 2


async def test_yolo_asks_nothing_and_is_the_requests_own() -> None:
    scene = Scene(asker=AskerTwin())
    await run(scene, "rm -rf build", policy=ApprovalPolicy("ask", (), True, yolo=True))
    assert not scene.asker.asked
    await run(scene, "rm -rf build")
    assert len(scene.asker.asked) == 1
    assert scene.hands.cwd == DIRECTORY
