"""Which models a provider has: the one question that also tells whether it lets us in."""

from __future__ import annotations

import json
from typing import Final, cast

import httpx

from hermes_ws.agent.models.endpoint import Endpoint
from hermes_ws.contract.errors import ModelFailed, ModelRateLimited, ModelUnauthorised

ANTHROPIC_VERSION: Final = "2023-06-01"
"""The version of Anthropic's interface that is spoken."""

OK: Final = 200
REFUSED: Final = (401, 403)
TOO_MANY: Final = 429

ANSWER_BYTES: Final = 4 * 1024 * 1024
"""Of the answer; a list of thousands of models has less."""


async def list_models(endpoint: Endpoint, kind: str, deadline_s: float) -> list[str]:
    """The names of the provider's models. Raises `ModelUnauthorised`, `ModelRateLimited`, `ModelFailed`."""
    headers = dict(endpoint.headers)
    if endpoint.api_key is not None and kind == "anthropic":
        headers |= {"x-api-key": endpoint.api_key, "anthropic-version": ANTHROPIC_VERSION}
    elif endpoint.api_key is not None:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=deadline_s, follow_redirects=False) as client:
            address = f"{endpoint.base_url.rstrip('/')}/models"
            async with client.stream("GET", address, headers=headers) as response:
                if response.status_code != OK:
                    raise _refused(response.status_code, endpoint)
                body = bytearray()
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > ANSWER_BYTES:
                        raise ModelFailed(f"{endpoint.host} answers without end.")
        return _names(json.loads(bytes(body)))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ModelFailed(
            f"{endpoint.host} cannot be reached ({type(error).__name__}).",
            hint="See whether it runs, and whether base_url is right.",
        ) from None
    except ValueError:
        raise ModelFailed(f"What {endpoint.host} answers is no list of models.") from None


def _refused(status: int, endpoint: Endpoint) -> ModelFailed:
    if status in REFUSED:
        return ModelUnauthorised(
            f"{endpoint.host} does not accept the key ({status}).", hint=f"Look at {endpoint.key_source}."
        )
    if status == TOO_MANY:
        return ModelRateLimited(f"{endpoint.host} asks to slow down.")
    return ModelFailed(f"{endpoint.host} answers {status}.", hint="See whether base_url is right.")


def _names(answer: object) -> list[str]:
    rows = cast("dict[str, object]", answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise ValueError("no list")
    names: list[str] = []
    for row in cast("list[object]", rows):
        name = cast("dict[str, object]", row).get("id") if isinstance(row, dict) else None
        if isinstance(name, str):
            names.append(name)
    return names
