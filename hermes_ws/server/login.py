"""How a browser signs in: it exchanges the ticket from the fragment of its link for a token of its own.

The fragment goes to no server, log or previewer, so the page has to send it: `POST /login` with `{"ticket": …}`, from
one of our own pages. There are no cookies: a cookie of 127.0.0.1 would go to every port of this machine.
"""

from __future__ import annotations

from typing import Final, final

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hermes_ws.contract.errors import HermesError
from hermes_ws.hosting.credentials import Credentials
from hermes_ws.server.entry import Refusal
from hermes_ws.server.http import Answer, plain

PATH: Final = "/login"

JSON: Final = "application/json"


@final
class Offered(BaseModel):
    """What the page sends."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    ticket: str = Field(min_length=1, max_length=512)


async def login(credentials: Credentials, body: bytes) -> Answer:
    """The token, and until when it holds. Raises `Refusal` for a ticket that is none, was used, or is too old."""
    try:
        offered = Offered.model_validate_json(body)
    except ValidationError:
        return plain(400)
    try:
        made = await credentials.login(offered.ticket)
    except HermesError as error:
        return Answer(503, orjson.dumps({"error": error.to_wire()}), JSON)
    if made is None:
        raise Refusal(401, credential=True)
    secret, token = made
    told = {"token": secret, "principal": token.grant.name, "expires_at": token.expires_at}
    return Answer(200, orjson.dumps(told), JSON)
