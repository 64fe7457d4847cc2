"""The people at the connections: who is asked, who answered, and who need not answer any more.

A question is a row in its profile's journal; what is kept here is only which connections it was sent to, so that they
can be told when it is settled. A connection that declares a kind later is sent what waits then. Nothing is settled by a
connection that ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import final

from pydantic import JsonValue

from hermes_ws.contract.errors import HermesError, InvalidParams
from hermes_ws.contract.methods.connection import ClientTool
from hermes_ws.contract.methods.questions import AnswerParams
from hermes_ws.contract.methods.runtime import ConnectionRow, Followed
from hermes_ws.contract.questions import CLIENT_TOOL, OpenQuestion
from hermes_ws.contract.registry import Right
from hermes_ws.methods.ports import Present
from hermes_ws.server.ports import Attending, Caller
from hermes_ws.server.skin import skin
from hermes_ws.session.ports import Counted
from hermes_ws.wire.frames import event_frame, request_frame

PROFILE_GONE = 4503
"""Close code: the profile that the connection was bound to is not there any more."""

Connections = Callable[[], Iterable[Caller]]
"""Those that are past their handshake now."""

Settle = Callable[[AnswerParams], Awaitable[object]]
"""Brings an answer to the profile that asked. Raises `HermesError` when it does not count."""


@final
class Audience:
    """All connections that are past their handshake, and the questions that they were sent."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._connections: Connections = tuple
        self._asked: dict[str, set[str]] = {}
        self._answering: set[tuple[str, str]] = set()
        """Connections whose answer is on its way to the profile: they are not sent the question again meanwhile."""
        self._kinds: dict[str, str] = {}
        self._skins: dict[str, str] = {}
        self._hinted: dict[str, set[str]] = {}
        """Of which profiles each connection was told that the list of sessions changed, since it said anything."""

    def follow(self, connections: Connections) -> None:
        """Where the connections are found; given once, when the server listens. Until then there is nobody to ask."""
        self._connections = connections

    @property
    def size(self) -> int:
        """How many connections there are now."""
        return sum(1 for _ in self._connections())

    def present(self) -> list[Present]:
        """Who is connected now, and to what they listen; of pipes and streams as well."""
        return [
            Present(
                principal=each.principal,
                row=ConnectionRow(
                    principal=each.principal.name,
                    transport=each.transport,
                    since=each.began,
                    client=f"{each.negotiated.client} {each.negotiated.version}".strip(),
                    profile=each.profile,
                    subscriptions=[
                        Followed(profile=at.profile, session_id=at.session_id, thread_id=at.thread_id)
                        for at in each.subscriptions()
                    ],
                ),
            )
            for each in self._connections()
            if isinstance(each, Attending)
        ]

    def left(self, connection: Caller) -> None:
        """A connection has ended. What it was asked stays open."""
        self._hinted.pop(connection.id, None)
        for asked in self._asked.values():
            asked.discard(connection.id)

    # --- the port that sessions are given ----------------------------------------------------------------------------

    def ask(self, question: OpenQuestion, profile: str) -> Counted:
        """Send a question to every connection that may answer for the profile and declared the kind."""
        with_right = capable = 0
        for connection in self._connections():
            if not _may_answer(connection, profile):
                continue
            with_right += 1
            if self._send(connection, question):
                capable += 1
        return Counted(with_right=with_right, capable=capable)

    def client_tools(self, profile: str) -> tuple[ClientTool, ...]:
        """The tools that connections offer which may answer for the profile; of two of one name, the earlier."""
        tools: dict[str, ClientTool] = {}
        for connection in self._connections():
            if _may_answer(connection, profile):
                for tool in connection.negotiated.client_tools:
                    tools.setdefault(tool.name, tool)
        return tuple(tools.values())

    def settled(self, question_id: str, reason: str, profile: str) -> None:
        """Tell those who were asked that no answer is needed any more. Who has answered is not told."""
        asked = self._asked.pop(question_id, set[str]())
        self._kinds.pop(question_id, None)
        for connection in self._connections():
            if connection.id in asked:
                payload: dict[str, JsonValue] = {"id": question_id, "reason": reason}
                envelope = {"type": "request.cancel", "profile": profile, "ts": self._clock(), "payload": payload}
                connection.notify(event_frame(envelope))

    def sessions_changed(self, profile: str, session_id: str | None) -> None:
        """Tell all who may look at the profile that its list of sessions is another one. Who has said nothing since the
        last time is not told again: it has not looked, and a client that is asleep is not filled up with hints."""
        payload: dict[str, JsonValue] = {} if session_id is None else {"session_id": session_id}
        envelope = {"type": "sessions.changed", "profile": profile, "ts": self._clock(), "payload": payload}
        frame = event_frame(envelope)
        for connection in tuple(self._connections()):
            if Right.OBSERVE in connection.principal.rights and connection.may_address(profile):
                hinted = self._hinted.setdefault(connection.id, set())
                if profile not in hinted:
                    hinted.add(profile)
                    connection.notify(frame)

    def heard(self, connection: Caller) -> None:
        """A connection has said something: it is awake."""
        self._hinted.pop(connection.id, None)

    def skin_changed(self, profile: str, name: str) -> None:
        """Tell all who may address the profile that it has another skin now."""
        self._skins[profile] = name
        frame = event_frame({"type": "skin.changed", "profile": profile, "ts": self._clock(), "payload": skin(name)})
        for connection in tuple(self._connections()):
            if connection.may_address(profile):
                connection.notify(frame)

    def skin_of(self, profile: str, at_start: str) -> str:
        """The skin that a profile has now; what it had at the start, unless that has changed."""
        return self._skins.get(profile, at_start)

    def profile_changed(self, profile: str, gone: bool) -> None:
        """Tell all who may address it that a profile came, changed or is gone; who came by its path leaves with it."""
        payload: dict[str, JsonValue] = {}
        frame = event_frame({"type": "profiles.changed", "ts": self._clock(), "payload": payload})
        for connection in tuple(self._connections()):
            if connection.may_address(profile):
                connection.notify(frame)
                if gone and connection.profile == profile:
                    connection.close(PROFILE_GONE, "the profile is gone")

    # --- later comers, and answers -----------------------------------------------------------------------------------

    def show(self, connection: Caller, question: OpenQuestion, profile: str) -> None:
        """Send a question that waits to a connection that came after it was asked."""
        if _may_answer(connection, profile):
            self._send(connection, question)

    def awaits(self, connection: Caller, id: object) -> bool:
        """Whether this connection was sent a question of this id that is not settled."""
        return isinstance(id, str) and connection.id in self._asked.get(id, ())

    def declined(self, connection: Caller, id: str) -> None:
        """This connection cannot show the kind after all, and is asked no question of it any more (case ASK-15)."""
        self._asked[id].discard(connection.id)
        connection.negotiated = connection.negotiated.without(self._kinds[id])

    async def answered(self, connection: Caller, id: str, result: JsonValue, settle: Settle) -> None:
        """An answer as a JSON-RPC response. One that does not count is told why in a notice, and may be given again."""
        self._asked[id].discard(connection.id)
        self._answering.add((connection.id, id))
        try:
            if not isinstance(result, dict):
                raise InvalidParams("The answer is not an object.", path="result")
            await settle(AnswerParams(id=id, result=result))
        except HermesError as problem:
            if id in self._asked:
                self._asked[id].add(connection.id)
            self._tell(connection, "error", problem.type, problem.message, problem.hint)
        finally:
            self._answering.discard((connection.id, id))

    def too_late(self, connection: Caller, id: str, outcome: str) -> None:
        """Tell a connection that answered a question which had its outcome already."""
        words = outcome.replace("_", " ")
        self._tell(connection, "info", outcome, f"The answer to {id} came too late: it is {words}.", "")

    def _tell(self, connection: Caller, level: str, type: str, message: str, hint: str) -> None:
        payload: dict[str, JsonValue] = {"level": level, "type": type, "message": message, "hint": hint}
        connection.notify(event_frame({"type": "notice", "ts": self._clock(), "payload": payload}))

    def _send(self, connection: Caller, question: OpenQuestion) -> bool:
        negotiated = connection.negotiated
        if question.kind not in negotiated.server_requests:
            return False
        if question.kind == CLIENT_TOOL.kind and all(
            each.name != question.params.get("tool") for each in negotiated.client_tools
        ):
            return False
        asked = self._asked.setdefault(question.id, set())
        if connection.id not in asked and (connection.id, question.id) not in self._answering:
            asked.add(connection.id)
            self._kinds[question.id] = question.kind
            connection.notify(request_frame(question.id, question.kind, dict(question.params)))
        return True


def _may_answer(connection: Caller, profile: str) -> bool:
    return connection.askable and Right.ANSWER in connection.principal.rights and connection.may_address(profile)
