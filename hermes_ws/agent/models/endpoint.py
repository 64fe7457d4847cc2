"""Where a provider answers and how patient to be, and what its refusals mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final, cast, final

from hermes_ws.agent.models.dialect import Dialect
from hermes_ws.contract.errors import ModelFailed, ModelRateLimited, ModelUnauthorised

RETRIES: Final = 4
"""Attempts after the first. With the back-off below they take about ten seconds, time for a restart of a server."""

RETRY_WITHIN_S: Final = 30.0
"""No attempt begins later than this after the first: a person waits, and should rather be told."""

BACK_OFF_S: Final = 0.5
"""Pause before the second attempt; each further one doubles it."""

BACK_OFF_MOST_S: Final = 8.0
"""Longest pause that we choose ourselves."""

ERROR_CHARACTERS: Final = 500
"""Of what the provider says about an error: a sentence or two; some send whole pages."""

_QUOTA: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Codes that come as 429 and that waiting does not mend."""


_PASSING: Final = frozenset(
    {"overloaded_error", "api_error", "rate_limit_error", "timeout_error", "server_error", "rate_limit_exceeded"}
)
"""Codes of errors within a stream that waiting may mend."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """Where a provider answers. `key_source` tells a person where its key is set; it holds no secret."""

    base_url: str
    host: str
    api_key: str | None
    headers: Mapping[str, str]
    key_source: str

    def __repr__(self) -> str:
        return f"Endpoint({self.host})"


@final
@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds until a connection stands, until the first piece has come, and between two signs of life."""

    connect_s: float = 10.0
    first_piece_s: float = 120.0
    idle_s: float = 60.0


@final
class Transient(Exception):
    """An attempt failed in a way that another may mend. `final` is what to raise when there is none."""

    def __init__(self, final: ModelFailed, retry_after_s: float | None = None) -> None:
        super().__init__(final.message)
        self.final = final
        self.retry_after_s = retry_after_s


def pause_s(attempt: int, retry_after_s: float | None, jitter: Callable[[], float]) -> float:
    """Seconds before attempt number `attempt` (from 1) is repeated: what was asked for, else back-off with jitter."""
    if retry_after_s is not None:
        return retry_after_s
    return min(BACK_OFF_MOST_S, BACK_OFF_S * 2 ** (attempt - 1)) * (0.5 + 0.5 * jitter())


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a response asks to wait (RFC 9110, section 10.2.3); None when it does not say, or not legibly."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text)
    if text:
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - now)
        except (ValueError, OverflowError, TypeError):
            return None
    return None


def refusal(
    endpoint: Endpoint,
    status: int,
    headers: Mapping[str, str],
    body: str,
    *,
    now: float,
    redact: Callable[[str], str],
    dialect: Dialect,
) -> ModelFailed | Transient:
    """What a response that is no answer means. Never holds the key, also when the provider quotes it."""
    told, code = _said(body)
    detail = f": {redact(told)}" if told else "."
    if status in (401, 403):
        return ModelUnauthorised(
            f"{endpoint.host} refused the key ({status}){detail}",
            hint=f"Check {endpoint.key_source}.",
            status=status,
        )
    if status == 429:
        wait = retry_after_s(headers, now)
        limited = ModelRateLimited(
            f"{endpoint.host} asks to slow down{detail}",
            hint="Wait a little, or choose another model." if code not in _QUOTA else "The account has no quota left.",
            status=status,
            retry_after_s=wait,
        )
        return limited if code in _QUOTA else Transient(limited, wait)
    said = f"{endpoint.host} answered with status {status}{detail}"
    failed = ModelFailed(said, hint=_hint(status, dialect), status=status)
    if status >= 500 or status in (408, 425):
        return Transient(failed, retry_after_s(headers, now))
    return failed


def _hint(status: int, dialect: Dialect) -> str:
    if status == 404:
        return f"Check the model's name, and that base_url in config.yaml ends where {dialect.path} begins."
    if 300 <= status < 400:
        return "base_url in config.yaml leads to a redirect; write the address that it leads to."
    if status in (400, 413, 422):
        return "The model may not take this request: look at its name, its limits, and whether it can call tools."
    if status == 402:
        return "The provider wants to be paid."
    return "The provider has a problem; try again later, or choose another model."


def error_in(chunk: Mapping[str, object]) -> str | None:
    """What a piece of a stream says went wrong; None when nothing did."""
    if not chunk.get("error"):
        return None
    return _said(json.dumps({"error": chunk["error"]}))[0] or "it does not say what"


def may_pass(chunk: Mapping[str, object]) -> bool:
    """Whether the error that a piece of a stream tells is one that another attempt may mend."""
    code = _said(json.dumps({"error": chunk.get("error")}))[1]
    return code in _PASSING or (code.isascii() and code.isdigit() and (code == "429" or code.startswith("5")))


def _said(body: str) -> tuple[str, str]:
    """The provider's sentence and code, wherever its kind of error has them."""
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        return ("" if "<" in body[:200] else body.strip()[:ERROR_CHARACTERS]), ""
    if isinstance(content, list) and content:
        content = cast("list[object]", content)[0]
    if not isinstance(content, dict):
        return body.strip()[:ERROR_CHARACTERS], ""
    told = cast("dict[str, object]", content)
    error: object = told.get("error", told)
    if isinstance(error, str):
        return error.strip()[:ERROR_CHARACTERS], ""
    if not isinstance(error, dict):
        return "", ""
    fields = cast("dict[str, object]", error)
    message = fields.get("message") or fields.get("detail") or fields.get("type") or ""
    code = fields.get("code") or fields.get("type") or ""
    return str(message).strip()[:ERROR_CHARACTERS], str(code)
