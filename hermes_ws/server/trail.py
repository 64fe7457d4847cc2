"""What is to be remembered of a request while it is handled, for the audit log."""

from __future__ import annotations

import time
from typing import Any, Final, cast, final

from hermes_ws.contract.model import Params
from hermes_ws.contract.registry import Method
from hermes_ws.hosting.runtime import ProfileRuntime
from hermes_ws.journal.audit import Deed
from hermes_ws.server.ports import Caller


@final
class Trail:
    """One request. `runtime` is the profile that it was done in, once that is known; `on_server` that it has none."""

    __slots__ = ("_connection", "_params", "method", "on_server", "runtime")

    def __init__(self, connection: Caller, method: Method[Any, Any], params: Params) -> None:
        self._connection = connection
        self._params = params
        self.method: Final = method
        self.runtime: ProfileRuntime | None = None
        self.on_server = False

    def deed(self, outcome: str) -> Deed:
        """Who did it, and what came of it. Nothing of what was said."""
        principal = self._connection.principal
        return Deed(
            at=time.time(),
            principal=principal.name,
            credential=principal.credential,
            connection=self._connection.id,
            method=self.method.name,
            session_id=cast("str | None", getattr(self._params, "session_id", None)),
            outcome=outcome,
        )
