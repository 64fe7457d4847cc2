"""What became of a request is never guessed: refused is told apart from lost, and the same command asks once more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_ws.contract.errors import RevisionConflict, StaleGeneration
from hermes_ws.contract.methods.mutations import Mutated
from tests.cli.conftest import PATIENCE
from tests.cli.test_line_mode import Conversation
from tests.client.peer import Peer


@pytest.fixture
def terminal(peer: Peer, home: Path) -> Iterator[Conversation]:
    conversation = Conversation(home, NO_COLOR="1")
    conversation.see(r"> ")
    yield conversation
    conversation.close()


RENAMED = Mutated(session_id="s-1", operation="rename", revision=8, result={"title": "A name"})


def test_an_edit_whose_answer_was_lost_is_asked_for_again_by_the_same_command(
    terminal: Conversation, peer: Peer
) -> None:
    peer.answers["session.mutate"] = RENAMED
    peer.lose_reply_of = {"session.mutate"}
    terminal.type("/title A name")
    terminal.see(r"It is not known whether session\.mutate was carried out")
    terminal.see(r"Type the same once more")
    assert len(peer.asked("session.mutate")) == 1, "nothing is sent again by itself"
    terminal.type("/title A name")
    terminal.see(r"The session is called A name\.")
    first, second = peer.asked("session.mutate")
    assert second == first


def test_another_command_gives_an_edit_of_unknown_outcome_up(terminal: Conversation, peer: Peer) -> None:
    peer.answers["session.mutate"] = RENAMED
    peer.lose_reply_of = {"session.mutate"}
    terminal.type("/title A name")
    terminal.see(r"Type the same once more")
    terminal.type("say hi")
    terminal.see(r"hi\n> ")
    terminal.type("/title A name")
    terminal.see(r"The session is called A name\.")
    first, second = peer.asked("session.mutate")
    assert second["request_id"] != first["request_id"]


def test_an_edit_that_somebody_came_before_is_refused_and_not_tried_with_what_is_new(
    terminal: Conversation, peer: Peer
) -> None:
    peer.refuse["session.mutate"] = RevisionConflict("The session was changed meanwhile.")
    terminal.type("/title A name")
    terminal.see(r"Error: The session was changed meanwhile\.")
    assert [each["expected_revision"] for each in peer.asked("session.mutate")] == [1]
    peer.refuse.clear()
    peer.answers["session.mutate"] = RENAMED
    terminal.type("/title A name")
    terminal.see(r"The session is called A name\.")
    first, second = peer.asked("session.mutate")
    assert second["request_id"] != first["request_id"], "a refusal is definite: this is another request"


def test_an_approval_of_an_earlier_generation_is_refused_by_the_server_and_told(
    terminal: Conversation, peer: Peer
) -> None:
    """The answer carries the generation that was shown with the question, and not the newest."""
    terminal.type("ask make clean")
    id = terminal.see(r"/approve (\S+) deny\n").group(1)
    peer.refuse["question.answer"] = StaleGeneration("That was asked by an execution that is over.")
    terminal.type(f"/approve {id} once")
    terminal.see(r"Error: That was asked by an execution that is over\.")
    (sent,) = peer.asked("question.answer")
    assert sent["execution_generation"] == 1
    assert peer.results == {}


def test_an_interrupt_of_another_execution_is_refused_and_told(terminal: Conversation, peer: Peer) -> None:
    terminal.type("hang")
    peer.wait_for(lambda: any(at.active for at in peer.conversations.values()), PATIENCE)
    peer.refuse["session.interrupt"] = StaleGeneration("Another execution runs by now.")
    terminal.type("/stop")
    while not peer.asked("session.interrupt"):
        terminal.see(r"Nothing runs\.|Error: Another")
        terminal.type("/stop")
    assert {each["execution_generation"] for each in peer.asked("session.interrupt")} == {1}


def test_words_whose_receipt_stays_lost_are_the_same_input_when_they_are_said_again(
    terminal: Conversation, peer: Peer
) -> None:
    """The link asks again by itself as long as it may; after that only the person does, under the same id."""
    peer.close_on["prompt.submit"] = 1
    terminal.type("say hi")
    terminal.see(r"hi\n> ")
    first, second = peer.asked("prompt.submit")
    assert first["input_id"] == second["input_id"]
    terminal.type("say hi")
    terminal.see(r"hi\n> ")
    assert peer.asked("prompt.submit")[2]["input_id"] != first["input_id"], "a known outcome: these are new words"
