"""Asking for one execution, and what is done with an answer that is for the profile rather than for the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast, final

from hermes_ws.agent.ports import Login
from hermes_ws.contract.model import Params, Result
from hermes_ws.contract.questions import APPROVAL, SECRET, ConnectionParams, ConnectionResult, SecretParams, ValueResult
from hermes_ws.contract.registry import Question
from hermes_ws.journal.failures import os_error
from hermes_ws.scope import config_edit
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Runtime
from hermes_ws.session.questions import Asking, Questions
from hermes_ws.session.vault import Logins


class Keep(Protocol):
    """Where values go that a person typed in for the profile."""

    async def __call__(self, values: Mapping[str, str]) -> None: ...


@final
class ExecutionAsker:
    """The `Asker` of one execution. `deadline_s` is how long a question waits that says nothing of its own."""

    def __init__(
        self, questions: Questions, asking: Asking, runtime: Runtime, keep: Keep, *, deadline_s: float | None = None
    ) -> None:
        self._questions = questions
        self._asking = asking
        self._runtime = runtime
        self._keep = keep
        self._deadline_s = deadline_s

    async def ask(self, question: Question, params: Result, *, deadline_s: float | None = None) -> Params:
        """As `Questions.ask`, for this execution. A secret is in the profile's `.env` before this returns."""
        waits = self._deadline_s if deadline_s is None else deadline_s
        if question is APPROVAL and self._asking.unattended:
            waits = None  # No bypass and no refusal: it stays open until somebody looks.
        result = await self._questions.ask(self._asking, question, params, deadline_s=waits)
        if question is SECRET and isinstance(result, ValueResult) and result.value is not None:
            await self._keep({cast("SecretParams", params).name: result.value})
        return result

    async def login(self, origin: str, site: str, *, code: bool) -> Login:
        """As `Logins.login`, from the profile's vault."""
        logins = Logins(self._runtime.vault, self, self._asking.key, self._runtime.limiter)
        return await logins.login(origin, site, code=code)

    async def post(self, params: ConnectionParams) -> str:
        """Ask for a connection, and wait for nothing; its id. What the answer holds is kept when it comes, and at the
        profile's `questions.connection_deadline_s` it expires.

        Raises `NoAnswerer` when clients may answer and none of them can show it.
        """

        async def decided(result: Params) -> None:
            values = cast("ConnectionResult", result).values
            if values:
                await self._keep(values)

        deadline_s = self._runtime.scope.config.questions.connection_deadline_s
        op_id = await self._questions.post(self._asking, params, decided, deadline_s=deadline_s)
        self._runtime.start_soon(self._questions.expire, op_id, deadline_s, name=f"the deadline of {op_id}")
        return op_id


def keeping(runtime: Runtime, scope: ProfileScope) -> Keep:
    """Keep values in the `.env` of a profile, and load it again, so that what is shown from now on hides them.

    Raises `InvalidParams` for what no environment can hold, `StorageUnavailable`.
    """

    def write(values: Mapping[str, str]) -> None:
        for name, value in values.items():
            config_edit.set_secret(scope.home.env, name, value)

    async def keep(values: Mapping[str, str]) -> None:
        try:
            await in_thread(runtime.limiter, write, values)
        except OSError as error:
            raise os_error(error, scope.home.env) from error
        await runtime.fresh_scope()

    return keep
