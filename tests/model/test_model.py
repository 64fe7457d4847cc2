"""Clients come, go, lag and resume while sessions run, are edited, crash and are brought back: the fold of what each
client received is the server's state, no question is both answered and open, and no input is lost or run twice.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model.driver import Acknowledged, Driver
from tests.model.watcher import comparable
from tests.model.world import Seat, childless

EXAMPLES = 40
STEPS = 50
"""Together some thousand steps, in half a minute."""

ROUNDS = 400
"""Rounds of answering and waiting after which whatever still runs is stuck."""

SESSIONS = 3
SUMMARY = "What was said until now, in one sentence that is always the same."

KINDS = st.sampled_from(
    ["/do say {mark}", "/do say {mark}\n/do stream 6 400", "/do say {mark}\n/do ask why?", "/do say {mark}\n/do wait 5",
     "/do say {mark}\n/do delegate /do say for {mark}", "/do delegate /do say {mark}\n\n/do ask and now?",
     "/do say {mark}\n/do fail model_failed", "{mark}\n/do ask one?\n/do ask two?\n\n/do stream 3 300"]
)  # fmt: skip
ANY = st.integers(min_value=0, max_value=999)


class Machine(Driver):
    """The steps that may be taken, in any order."""

    def teardown(self) -> None:
        try:
            self.do(self._bring_to_an_end)
        finally:
            self.throw_away()

    # --- rules -------------------------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.create()
        for watcher in self.watchers:
            self.do(lambda: watcher.follow(self.sessions[0], fresh=True))  # noqa: B023

    @precondition(lambda self: len(self.sessions) < SESSIONS)
    @rule()
    def create(self) -> None:
        made = self.do(lambda: self._get("session.create", subscribe=False))
        self.sessions.append(made["session_id"])

    @rule(who=ANY, session=ANY, fresh=st.booleans(), attentive=st.booleans())
    def connect(self, who: int, session: int, fresh: bool, attentive: bool) -> None:
        watcher = self.watchers[who % len(self.watchers)]
        watcher.attentive = attentive
        self.do(lambda: watcher.follow(self._session(session), fresh=fresh))

    @rule(who=ANY)
    def drop(self, who: int) -> None:
        self.do(self.watchers[who % len(self.watchers)].drop)

    @rule(who=ANY)
    def lag(self, who: int) -> None:
        self.watchers[who % len(self.watchers)].attentive = False

    @rule(who=ANY)
    def resume(self, who: int) -> None:
        watcher = self.watchers[who % len(self.watchers)]
        watcher.attentive = True
        if watcher.session_id in self.sessions:
            self.do(lambda: watcher.follow(str(watcher.session_id), fresh=False))

    @rule(session=ANY, kind=KINDS, mode=st.sampled_from(["queue", "queue", "steer", "reject"]), finite=st.booleans())
    def submit(self, session: int, kind: str, mode: str, finite: bool) -> None:
        given = self._new_input(session, kind, mode, finite)
        self.do(lambda: self._submit(given))

    @rule(session=ANY, mode=st.sampled_from(["queue", "steer"]))
    def submit_what_waits(self, session: int, mode: str) -> None:
        given = self._new_input(session, "/do say {mark}\n/do ask why?\n/do stream 4 300", mode, False)
        self.do(lambda: self._submit(given))

    def _new_input(self, session: int, kind: str, mode: str, finite: bool) -> Acknowledged:
        self.marks += 1
        mark = f"mark-{self.marks}-"
        params = {"input_id": mark, "text": kind.format(mark=mark), "mode": mode, "finite": finite}
        return Acknowledged(self._session(session), params)

    async def _submit(self, given: Acknowledged) -> None:
        frame = await self._ask("prompt.submit", session_id=given.session_id, **given.params)
        if "error" in frame:
            assert given.params["mode"] == "reject"
            assert frame["error"]["data"]["type"] in ("session_busy", "unknown_execution"), frame
            return
        admission_id = frame["result"]["admission_id"]
        assert given.admission_id in (None, admission_id), "a repeated input is the same admission"
        if given.admission_id is None:
            given.admission_id = admission_id
            self.inputs.append(given)

    @precondition(lambda self: self.inputs)
    @rule(which=ANY)
    def submit_again(self, which: int) -> None:
        given = self.inputs[which % len(self.inputs)]
        if given.session_id in self.sessions:
            self.do(lambda: self._submit(given))

    @rule(session=ANY, kind=KINDS, then=st.booleans())
    def submit_and_crash_before_the_reply(self, session: int, kind: str, then: bool) -> None:
        given = self._new_input(session, kind, "queue", False)

        async def cut() -> None:
            seat = Seat(self.world, "cut")
            self.world.server.seats.append(seat)
            seat.send("prompt.submit", session_id=given.session_id, **given.params)
            await self._crash(rest=then)
            await self._submit(given)

        self.do(cut)

    @rule(session=ANY, stale=st.sampled_from([0, 0, 0, -1, 1]))
    def interrupt(self, session: int, stale: int) -> None:
        self.do(lambda: self._control(session, stale, "session.interrupt"))

    @rule(session=ANY, stale=st.sampled_from([0, 0, 0, -1, 1]))
    def steer(self, session: int, stale: int) -> None:
        self.marks += 1
        self.do(lambda: self._control(session, stale, "session.steer", text=f"/do say steered-{self.marks}-"))

    async def _control(self, session: int, stale: int, method: str, **params: Any) -> None:
        session_id = await self._one_that(session, lambda state: state.execution is not None)
        state = await self._state(session_id)
        generation = 1 if state.execution is None else max(0, state.execution.execution_generation + stale)
        told = await self._get(method, session_id=state.session_id, execution_generation=generation, **params)
        if state.execution is None:
            assert told["outcome"] == "no_active_execution"
        elif generation != state.execution.execution_generation:
            assert told["outcome"] == "generation_mismatch"
        else:
            assert told["outcome"] in ("accepted", "not_steerable", "finishing")

    @rule(session=ANY)
    def answer(self, session: int) -> None:
        async def one() -> None:
            await self._answer(await self._one_that(session, lambda state: bool(state.questions)))

        self.do(one)

    async def _answer(self, session_id: str) -> bool:
        state = await self._state(session_id)
        for question in state.questions:
            items: Any = question.params["questions"]
            answers = {each["qid"]: "because" for each in items}
            told = await self._get("question.answer", id=question.id, result={"answers": answers})
            assert told["outcome"] == "settled"
            self.answered.add(question.id)
            again = await self._get("question.answer", id=question.id, result={"answers": answers})
            assert again["outcome"] == "already_settled"
            return True
        return False

    @rule(session=ANY)
    def cancel(self, session: int) -> None:
        async def take_back() -> None:
            state = await self._state(await self._one_that(session, lambda state: len(state.pending) > 1))
            for row in state.pending:
                named = {"session_id": state.session_id, "admission_id": row.admission_id}
                told = await self._get("prompt.cancel", **named)
                assert told["status"] == ("cancelled" if row.status == "queued" else row.status)

        self.do(take_back)

    @rule(session=ANY)
    def resolve(self, session: int) -> None:
        self.do(lambda: self._resolve(self._session(session)))

    async def _resolve(self, session_id: str) -> bool:
        for row in (await self._state(session_id)).pending:
            if row.status == "unknown":
                named = {"admission_id": row.admission_id, "execution_generation": row.execution_generation}
                told = await self._get("prompt.resolve_unknown", session_id=session_id, **named)
                assert told["status"] == "finished"
                return True
        return False

    async def _mutate(self, session_id: str, operation: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        state = await self._state(session_id)
        self.requests += 1
        params = {"session_id": session_id, "request_id": f"request-{self.requests}", "operation": operation}
        params |= {"expected_revision": state.revision, "payload": payload}
        frame = await self._ask("session.mutate", **params)
        if "error" in frame and frame["error"]["data"]["type"] == "consent_required":
            frame = await self._ask("session.mutate", **params, consent=frame["error"]["data"]["consent"])
        if "error" in frame:
            assert state.pending, frame
            assert frame["error"]["data"]["type"] in ("session_busy", "unknown_execution"), frame
            return None
        assert await self._get("session.mutate", **params) == frame["result"], "a repeated request is answered alike"
        return frame["result"]

    @rule(session=ANY)
    def rename(self, session: int) -> None:
        self.marks += 1
        done = self.do(lambda: self._mutate(self._session(session), "rename", {"title": f"title {self.marks}"}))
        assert done is not None

    @rule(session=ANY)
    def replace_the_journal(self, session: int) -> None:
        brought = {"messages": [{"role": "user", "text": "go on"}, {"role": "assistant", "text": SUMMARY}]}
        if self.do(lambda: self._mutate(self._session(session), "import", brought)) is not None:
            self.replaced.add(self._session(session))

    @rule(session=ANY, mode=st.sampled_from(["soft", "hard"]), here=st.integers(min_value=1, max_value=4))
    def compress(self, session: int, mode: str, here: int) -> None:
        """By the session's own model; with `hard` the journal is another one afterwards."""
        session_id = self._session(session)
        done = self.do(lambda: self._mutate(session_id, "compress", {"mode": mode, "here": here}))
        if done is not None and done["result"]["compressed"] and mode == "hard":
            self.replaced.add(session_id)

    @rule(session=ANY, back=st.integers(min_value=1, max_value=4))
    def rewind(self, session: int, back: int) -> None:
        async def take_back() -> None:
            state = await self._state(self._session(session), messages=True)
            said = [message.message_id for message in state.messages or [] if message.role == "user"][-back:]
            if said and await self._mutate(state.session_id, "rewind", {"message_id": said[0]}) is not None:
                self.replaced.add(state.session_id)

        self.do(take_back)

    @precondition(lambda self: len(self.sessions) < SESSIONS)
    @rule(session=ANY)
    def fork(self, session: int) -> None:
        done = self.do(lambda: self._mutate(self._session(session), "branch", {}))
        assert done is not None
        self.sessions.append(done["result"]["session_id"])
        self.replaced.add(self.sessions[-1])

    @precondition(lambda self: len(self.sessions) == SESSIONS)
    @rule(session=ANY)
    def delete(self, session: int) -> None:
        session_id = self._session(session)
        if self.do(lambda: self._mutate(session_id, "delete", {})) is not None:
            self.sessions.remove(session_id)
            self.deleted.add(session_id)

    @rule(session=ANY)
    def put_away(self, session: int) -> None:
        frame = self.do(lambda: self._ask("session.close", session_id=self._session(session)))
        assert "result" in frame or frame["error"]["data"]["type"] == "session_busy", frame

    @rule(seconds=st.sampled_from([0.3, 0.5, 1.0, 5.0, 30.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.do(lambda: self._wait(seconds))

    async def _wait(self, seconds: float) -> None:
        await self.world.rest()
        self.world.clock.jump(seconds)
        await self.world.rest()

    @rule(rest=st.booleans())
    def crash(self, rest: bool) -> None:
        self.do(lambda: self._crash(rest=rest))

    async def _crash(self, *, rest: bool) -> None:
        if rest:
            await self.world.rest()
        await self.world.crash()
        await self._back()

    async def _back(self) -> None:
        """The server is back: all connections are gone, and clients that are not away come back by themselves."""
        await self.world.runtime()
        await self.world.rest()
        for watcher in self.watchers:
            connected, watcher.seat = watcher.seat is not None, None
            if connected and watcher.attentive and watcher.session_id in self.sessions:
                await watcher.follow(str(watcher.session_id), fresh=False)

    @rule()
    def restart(self) -> None:
        async def orderly() -> None:
            await self.world.restart()
            await self._back()

        self.do(orderly)

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def the_fold_of_what_a_client_received_is_the_servers_state(self) -> None:
        self.do(self._compare)

    async def _compare(self) -> None:
        await self.world.rest()
        assert "internal" not in self.world.server.log.getvalue(), self.world.server.log.getvalue()
        for watcher in self.watchers:
            if watcher.seat is None or not watcher.attentive:
                continue
            await watcher.read()
            if watcher.session_id in self.deleted:
                assert watcher.gone, "a client of a deleted session is told"
            elif watcher.listens:
                assert watcher.state is not None
                fresh = await self._state(str(watcher.session_id), messages=True)
                count = len(fresh.messages or [])
                live = watcher.live == "full"
                folded = comparable(watcher.state, live=live, messages=count)
                assert folded == comparable(fresh, live=live, messages=count)

    @invariant()
    def no_question_is_both_answered_and_open(self) -> None:
        async def look() -> None:
            for session_id in self.sessions:
                state = await self._state(session_id)
                assert not self.answered & {question.id for question in state.questions}

        self.do(look)

    # --- the end -----------------------------------------------------------------------------------------------------

    async def _bring_to_an_end(self) -> None:
        """Answer, resolve and wait until nothing runs; then every accepted input has come to one end."""
        for _ in range(ROUNDS):
            moved = False
            for session_id in self.sessions:
                moved = await self._resolve(session_id) or await self._answer(session_id) or moved
            states = [await self._state(session_id) for session_id in self.sessions]
            if not moved and not any(state.pending for state in states):
                break
            await self._wait(1.0)
        else:
            raise AssertionError(f"something is stuck: {[state.pending for state in states]}")
        for watcher in self.watchers:
            if watcher.session_id in self.sessions:
                watcher.attentive = True
                await watcher.follow(str(watcher.session_id), fresh=False)
        await self._compare()
        for given in self.inputs:
            if given.session_id in self.sessions:
                await self._see_that_it_ran_once(given)

    async def _see_that_it_ran_once(self, given: Acknowledged) -> None:
        receipt = await self._get("prompt.receipt", session_id=given.session_id, input_id=given.params["input_id"])
        assert receipt["admission_id"] == given.admission_id
        assert receipt["status"] in ("finished", "cancelled"), receipt
        journal = (await self.world.runtime()).journal
        query = "SELECT count(*), count(outcome) FROM execution WHERE admission_id = ?"
        runs, settled = await journal.read(lambda db: db.execute(query, (given.admission_id,)).fetchone())
        # Only an execution that was lost at a safe point is followed by another one of its input, once.
        assert settled <= 1
        assert runs - settled <= 1 + (receipt["outcome"] == "cancelled")
        if given.session_id not in self.replaced:
            state = await self._state(given.session_id, messages=True)
            said = [message for message in state.messages or [] if message.text == given.params["text"]]
            assert len(said) <= 1
            if receipt["status"] == "finished" and not state.more_messages:
                assert len(said) == 1


def test_whatever_happens_clients_and_server_agree() -> None:
    with childless():
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
