"""Following a thread while connections come and go."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from itertools import islice

import anyio
import pytest

from hermes_ws.client.connect import Abilities
from hermes_ws.client.discovery import Endpoint, remote
from hermes_ws.client.failures import ConnectFailed, ConnectionLost, NotSent, OutcomeUnknown, RemoteError
from hermes_ws.client.follow import Away, Item, Resumed, follow
from hermes_ws.client.link import FIRST_PAUSE, LONGEST_PAUSE, Link, linked, pauses
from hermes_ws.client.live_text import LiveTexts
from hermes_ws.contract.events import Envelope
from hermes_ws.contract.methods.connection import GATEWAY_PING
from hermes_ws.contract.methods.prompts import PROMPT_SUBMIT, SubmitParams
from hermes_ws.contract.methods.sessions import SESSION_CREATE, Created, CreateParams
from hermes_ws.contract.model import Empty
from tests.client.peer import Peer


def over(peer: Peer, backend: str, body: Callable[[Link], Awaitable[None]], abilities: Abilities | None = None) -> None:
    async def main() -> None:
        with anyio.fail_after(30):
            async with linked(lambda: remote(peer.url, peer.token), abilities, chance=random.Random(1)) as link:
                await body(link)

    anyio.run(main, backend=backend)


async def made(link: Link) -> Created:
    return await link.call(SESSION_CREATE, CreateParams(request_id="r-1", subscribe=False))


async def say(link: Link, session_id: str, text: str, input_id: str = "i-1") -> str:
    params = SubmitParams(session_id=session_id, input_id=input_id, text=text)
    return (await link.call(PROMPT_SUBMIT, params)).admission_id


async def until_finished(link: Link, created: Created) -> list[Item]:
    seen: list[Item] = []
    async for item in follow(link, created.session_id, after=created.cursor):
        seen.append(item)
        if isinstance(item, Envelope) and item.type == "execution.finished":
            return seen
    return seen


def committed(items: list[Item]) -> list[str]:
    return [item.cursor for item in items if isinstance(item, Envelope) and item.cursor is not None]


@pytest.mark.parametrize("cut_after", range(1, 14))
def test_wherever_the_connection_is_cut_every_event_comes_once_in_order(
    peer: Peer, backend: str, cut_after: int
) -> None:
    """Cases REPLAY-01, REPLAY-03, REPLAY-04, REPLAY-17."""
    peer.events_before_cut = cut_after
    text = "abcdefgh" * 4

    async def body(link: Link) -> None:
        created = await made(link)
        await say(link, created.session_id, f"say {text}")
        seen = await until_finished(link, created)
        assert committed(seen) == [f"1:{number}" for number in range(1, 7)]
        texts = LiveTexts()
        told = ""
        for item in seen:
            if isinstance(item, Resumed) and item.snapshot.in_progress is not None:
                told += texts.grow(item.snapshot.in_progress.message_id, 0, item.snapshot.in_progress.text)
            elif isinstance(item, Envelope) and item.type == "message.delta":
                offset = int(str(item.payload["offset"]))
                told += texts.grow(str(item.payload["message_id"]), offset, str(item.payload["text"]))
            elif isinstance(item, Envelope) and item.type == "message.complete" and item.payload["role"] == "assistant":
                ending = texts.end(str(item.payload["message_id"]), str(item.payload["text"]))
                assert not ending.anew
                told += ending.rest
        assert told == text

    over(peer, backend, body)


def test_a_cursor_counts_an_event_only_when_it_was_handled(peer: Peer, backend: str) -> None:
    """Case REPLAY-14."""

    async def body(link: Link) -> None:
        created = await made(link)
        await say(link, created.session_id, "say hello")
        following = follow(link, created.session_id, after=created.cursor)
        assert isinstance(await anext(following), Resumed)
        first = await anext(following)
        assert isinstance(first, Envelope)
        assert (first.cursor, following.cursor) == ("1:1", "1:0")
        await anext(following)
        assert following.cursor == "1:1"
        again = follow(link, created.session_id, after=following.cursor)
        await anext(again)
        second = await anext(again)
        assert isinstance(second, Envelope)
        assert second.cursor == "1:2"

    over(peer, backend, body)


def test_a_replaced_journal_is_told_and_read_from_its_beginning(peer: Peer, backend: str) -> None:
    """Cases REPLAY-02, REPLAY-16."""

    async def body(link: Link) -> None:
        created = await made(link)
        await say(link, created.session_id, "say hello")
        await until_finished(link, created)
        following = follow(link, created.session_id, after="7:3")
        resumed = await anext(following)
        assert isinstance(resumed, Resumed)
        assert resumed.dropped
        first = await anext(following)
        assert isinstance(first, Envelope)
        assert first.cursor == "1:1"

    over(peer, backend, body)


def test_open_questions_come_with_every_resume(peer: Peer, backend: str) -> None:
    """Cases ASK-03, ASK-10."""

    async def body(link: Link) -> None:
        created = await made(link)
        await say(link, created.session_id, "ask ls")
        opened: list[str] = []
        async for item in follow(link, created.session_id, after=created.cursor):
            if isinstance(item, Envelope) and item.type == "request.opened":
                opened.append(str(item.payload["id"]))
                peer.cut()
            if isinstance(item, Resumed) and opened:
                assert [question.id for question in item.snapshot.questions] == opened
                return

    over(peer, backend, body)


def test_a_server_that_restarts_with_a_new_token_is_found_again(peer: Peer, backend: str) -> None:
    async def body(link: Link) -> None:
        created = await made(link)
        following = follow(link, created.session_id, after=created.cursor)
        assert isinstance(await anext(following), Resumed)
        await anyio.to_thread.run_sync(peer.stop)
        assert isinstance(await anext(following), Away)
        peer.token = "a-new-token"
        await anyio.to_thread.run_sync(peer.start)
        assert isinstance(await anext(following), Resumed)

    over(peer, backend, body)


def test_a_withdrawn_credential_ends_the_link(peer: Peer, backend: str) -> None:
    async def body(link: Link) -> None:
        created = await made(link)
        following = follow(link, created.session_id, after=created.cursor)
        await anext(following)
        await anyio.to_thread.run_sync(peer.close_all, 4501, "withdrawn")
        assert isinstance(await anext(following), Away)
        with pytest.raises(ConnectionLost, match="withdrawn"):
            await anext(following)

    over(peer, backend, body)


def test_a_session_that_is_gone_is_an_error_and_not_a_silence(peer: Peer, backend: str) -> None:
    async def body(link: Link) -> None:
        with pytest.raises(RemoteError) as caught:
            await anext(follow(link, "nobody"))
        assert caught.value.type == "session_unknown"

    over(peer, backend, body)


def test_a_prompt_whose_receipt_was_lost_is_sent_again_under_its_own_id(peer: Peer, backend: str) -> None:
    """Case TURN-07."""
    peer.lose_reply_of |= {"prompt.submit", "session.create"}

    async def body(link: Link) -> None:
        created = await made(link)
        await say(link, created.session_id, "say once")
        await until_finished(link, created)

    over(peer, backend, body)
    assert len(peer.asked("prompt.submit")) == len(peer.asked("session.create")) == 2
    assert len(peer.conversations) == len(peer.admitted) == 1


def test_what_has_no_id_of_its_own_is_not_sent_again(peer: Peer, backend: str) -> None:
    peer.lose_reply_of.add("session.create")

    async def body(link: Link) -> None:
        with pytest.raises(OutcomeUnknown):
            await link.call(SESSION_CREATE, CreateParams())

    over(peer, backend, body)
    assert len(peer.asked("session.create")) == 1


def test_a_call_waits_for_the_connection_and_gives_up_in_time(peer: Peer, backend: str) -> None:
    async def body(link: Link) -> None:
        gateway = await link.gateway()
        await anyio.to_thread.run_sync(peer.stop)
        await gateway.wait_lost()  # a ping into a socket that dies would rightly be of unknown outcome
        with pytest.raises(NotSent):
            await link.call(GATEWAY_PING, Empty(), patience_s=0.2)
        waiting = anyio.Event()

        async def ping() -> None:
            assert (await link.call(GATEWAY_PING, Empty())).ok
            waiting.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ping)
            await anyio.to_thread.run_sync(peer.start)
            await waiting.wait()

    over(peer, backend, body)


def test_a_link_that_never_stood_says_why_at_once(backend: str) -> None:
    def nowhere() -> Endpoint:
        raise ConnectFailed("Nothing runs there.", retry=True)

    async def main() -> None:
        async with linked(nowhere):
            pytest.fail("there is nothing to link to")

    with pytest.raises(ConnectFailed, match="Nothing runs there"):
        anyio.run(main, backend=backend)


def test_pauses_grow_to_a_bound_and_are_spread() -> None:
    """Case REPLAY-07."""
    taken = list(islice(pauses(random.Random(7)), 12))
    assert taken[0] <= FIRST_PAUSE
    assert all(LONGEST_PAUSE / 2 <= pause <= LONGEST_PAUSE for pause in taken[8:])
    assert len(set(taken[8:])) == 4


def test_a_token_that_was_read_too_early_is_read_again(peer: Peer, backend: str) -> None:
    """A restarted server answers before its token was looked up anew: 401 is the end only where there is no other."""
    read: list[str] = []

    def locate() -> Endpoint:
        read.append("stale" if len(read) == 1 else peer.token)
        return remote(peer.url, read[-1])

    async def main() -> None:
        with anyio.fail_after(30):
            async with linked(locate, None, chance=random.Random(1)) as link:
                created = await made(link)
                peer.cut()
                assert await made(link) == created
                assert link.opened == 2

    anyio.run(main, backend=backend)
    assert read[1] == "stale", "that was refused once"


def test_a_token_that_stays_refused_is_the_end(peer: Peer, backend: str) -> None:
    async def body(link: Link) -> None:
        await made(link)
        peer.token = "another"
        peer.cut()
        with pytest.raises(ConnectFailed, match="does not accept the token"):
            await made(link)

    token = peer.token

    async def main() -> None:
        with anyio.fail_after(30):
            async with linked(lambda: remote(peer.url, token), None, chance=random.Random(1)) as link:
                await body(link)

    anyio.run(main, backend=backend)
