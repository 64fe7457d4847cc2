"""A model behind an HTTP endpoint that streams its answer as server-sent events, in whichever dialect.

Until the first piece of an answer has come, a failure that may pass is tried again; after it, what has come stands and
the failure is said. Nothing is taken from the process environment: no proxy, no key, no certificate.
"""

from __future__ import annotations

import math
import random
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final, TypeVar, final

import httpx
import trio
from httpx_sse import EventSource

from hermes_ws import __version__
from hermes_ws.agent.models.dialect import Dialect, Malformed, ReplyStream
from hermes_ws.agent.models.endpoint import RETRIES, RETRY_WITHIN_S, Endpoint, Patience, Transient, pause_s, refusal
from hermes_ws.agent.models.model import ModelRequest, Piece, RetryPiece
from hermes_ws.contract.errors import ModelFailed, ModelUnauthorised
from hermes_ws.scope.current import in_thread

T = TypeVar("T")

LINE_BYTES: Final = 8 * 1024 * 1024
"""Longest line of a stream. A whole call with its arguments fits; what has no line ends would fill the memory."""

RESPONSE_BYTES: Final = 64 * 1024 * 1024
"""Longest response: some hundred bytes of wrapping for each of a hundred thousand pieces."""

ERROR_BYTES: Final = 65_536
"""Read of a response that is an error."""

MALFORMED: Final = 20
"""Chunks that are passed over. One may be a provider's oddity; more, and this is not the protocol."""

SILENCE_S: Final = 600.0
"""Seconds without a chunk, however many signs of life come in between: nobody believes in the answer any more."""

GOODBYE_S: Final = 0.5
"""Seconds that a response may take to end after its last chunk; then its connection can be used again."""

WRITE_S: Final = 30.0
"""Seconds in which an endpoint must take some of the request."""


Mint = Callable[[], Awaitable[str]]
"""Gets a key that is made for the moment. Raises ModelUnauthorised."""


@final
class HttpModel:
    """One model behind one endpoint, for one turn. Its connections are kept between the steps of the turn."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        dialect: Dialect,
        *,
        patience: Patience,
        redact: Callable[[str], str],
        mint: Mint | None = None,
        jitter: Callable[[], float] = random.random,
        provider: str | None = None,
    ) -> None:
        self.name = name
        self.provider = provider or dialect.provider
        self._endpoint = endpoint
        self._dialect = dialect
        self._patience = patience
        self._redact = redact
        self._mint = mint
        self._key = endpoint.api_key
        self._jitter = jitter
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[Piece], None]:
        """Stream one reply; see `Model`."""
        async with aclosing(self._attempts(request)) as pieces:
            yield pieces

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _attempts(self, request: ModelRequest) -> AsyncGenerator[Piece, None]:
        body = self._dialect.body(self.name, request)
        minted = False
        last = trio.current_time() + RETRY_WITHIN_S
        for attempt in range(1, RETRIES + 2):
            stream = self._dialect.reply()
            if self._key is None and self._mint is not None:
                self._key = await self._mint()
                minted = True
            try:
                async with aclosing(self._attempt(body, stream)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except ModelUnauthorised as failed:
                # A key that was made some steps ago may have expired since; one that is new has not.
                if self._mint is None or minted or stream.began:
                    raise
                self._key = None
                retry = RetryPiece(failed.message, 0.0)
            except Transient as failed:
                pause = pause_s(attempt, failed.retry_after_s, self._jitter)
                if stream.began or attempt > RETRIES or trio.current_time() + pause > last:
                    raise failed.final from failed.__cause__
                retry = RetryPiece(failed.final.message, pause)
            yield retry
            await trio.sleep(retry.delay_s)

    async def _attempt(self, body: bytes, stream: ReplyStream) -> AsyncGenerator[Piece, None]:
        """One request. Raises Transient for what another attempt may mend, ModelFailed for the rest."""
        response = await self._send(body)
        response.stream = _Bounded(response.stream, lambda: self._patience.idle_s if stream.began else math.inf)
        try:
            if response.status_code != 200:
                raise await self._refused(response)
            if "text/event-stream" in response.headers.get("content-type", ""):
                response.encoding = "utf-8"  # A stream of events always is, whatever its header says.
                async with aclosing(self._events(response, stream)) as pieces:
                    async for piece in pieces:
                        yield piece
            else:
                for piece in await self._whole(response, stream):
                    yield piece
        finally:
            await response.aclose()
        if not stream.finished:
            raise Transient(ModelFailed(f"The answer of {self._endpoint.host} broke off."))
        for piece in stream.end():
            yield piece

    async def _send(self, body: bytes) -> httpx.Response:
        endpoint = self._endpoint
        if self._client is None:
            self._client = await self._open()
        headers = {
            **endpoint.headers,
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            # Compressed, a stream comes in lumps, and a small response can be a large one.
            "Accept-Encoding": "identity",
            "User-Agent": f"hermes-ws/{__version__}",
        }
        try:
            headers |= self._dialect.headers(self._key)
            url = f"{endpoint.base_url.rstrip('/')}{self._dialect.path}"
            request = self._client.build_request("POST", url, content=body, headers=headers)
        except (UnicodeEncodeError, ValueError):
            raise ModelUnauthorised(
                "The key, or a header, holds characters that cannot be sent.", hint=f"Check {endpoint.key_source}."
            ) from None
        try:
            with trio.fail_after(self._patience.first_piece_s):
                response = await self._client.send(request, stream=True)
        except trio.TooSlowError:
            raise self._silent(self._patience.first_piece_s) from None
        except httpx.LocalProtocolError:
            raise ModelUnauthorised(
                "The key, or a header, holds characters that cannot be sent.", hint=f"Check {endpoint.key_source}."
            ) from None
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            await response.aclose()
            raise ModelFailed(f"{endpoint.host} compresses its answer ({encoding[:40]}), although it was told not to.")
        return response

    async def _open(self) -> httpx.AsyncClient:
        patience = self._patience
        if self._endpoint.base_url.lower().startswith("https:"):
            # Reads a file of certificates, which takes 20 ms.
            context = await in_thread(trio.CapacityLimiter(1), _certificates)
        else:
            context = False
        return httpx.AsyncClient(
            verify=context,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=patience.connect_s, write=WRITE_S),
        )

    async def _events(self, response: httpx.Response, stream: ReplyStream) -> AsyncGenerator[Piece, None]:
        deadline = trio.current_time() + self._patience.first_piece_s
        malformed = 0
        async with _exhausted(EventSource(response).aiter_sse()) as events:
            while True:
                allowed = SILENCE_S if stream.began else max(0.0, deadline - trio.current_time())
                try:
                    with trio.fail_after(allowed):
                        event = await anext(events, None)
                except trio.TooSlowError:
                    if stream.finished:
                        return
                    raise self._silent(
                        self._patience.idle_s if stream.began else self._patience.first_piece_s
                    ) from None
                except httpx.TransportError as error:
                    if stream.finished:
                        return  # All that is missing is the count of tokens.
                    raise self._unreachable(error) from error
                if event is None:
                    return
                if not event.data:
                    continue
                try:
                    pieces = self._fed(stream, event.data)
                except Malformed:
                    malformed += 1
                    if malformed > MALFORMED:
                        raise ModelFailed(f"{self._endpoint.host} sends what is no {self._dialect.what}.") from None
                    continue
                for piece in pieces:
                    yield piece
                if stream.over:
                    with trio.move_on_after(GOODBYE_S):
                        await anext(events, None)
                    return

    async def _whole(self, response: httpx.Response, stream: ReplyStream) -> list[Piece]:
        """A response that is no stream: some servers ignore that they were asked for one."""
        text = await self._text(response, LINE_BYTES)
        try:
            return self._fed(stream, text)
        except Malformed:
            raise ModelFailed(
                f"{self._endpoint.host} answers with something that is no {self._dialect.what}.",
                hint=f"Check that base_url in config.yaml ends where {self._dialect.path} begins.",
            ) from None

    async def _refused(self, response: httpx.Response) -> ModelFailed | Transient:
        text = await self._text(response, ERROR_BYTES)
        status, headers = response.status_code, response.headers
        return refusal(self._endpoint, status, headers, text, now=time.time(), redact=self._said, dialect=self._dialect)

    async def _text(self, response: httpx.Response, most: int) -> str:
        """The body, or as much of it as is allowed."""
        data = b""
        try:
            with trio.move_on_after(self._patience.first_piece_s):
                async with _exhausted(response.aiter_bytes()) as pieces:
                    async for piece in pieces:
                        data += piece
                        if len(data) >= most:
                            break
        except httpx.TransportError:
            pass  # What has come is enough to say what went wrong, and not enough for an answer.
        return data[:most].decode(errors="replace")

    def _fed(self, stream: ReplyStream, data: str) -> list[Piece]:
        try:
            return stream.feed(data)
        except ModelFailed as failed:
            raise ModelFailed(self._said(failed.message), hint=failed.hint) from None
        except Transient as failed:
            final = failed.final
            raise Transient(type(final)(self._said(final.message), hint=final.hint)) from None

    def _said(self, text: str) -> str:
        """What a provider says, without secrets: also without a key that was made for the moment."""
        text = self._redact(text)
        return text if self._key is None or self._mint is None else text.replace(self._key, "«secret:key_command»")

    def _silent(self, seconds: float) -> Transient:
        return Transient(
            ModelFailed(
                f"{self._endpoint.host} said nothing for {seconds:g} seconds.",
                hint="Try again, or give it more time: model.first_piece_s and model.idle_s in config.yaml.",
            )
        )

    def _unreachable(self, error: httpx.TransportError) -> Transient | ModelFailed:
        if isinstance(error, _Flood):
            return ModelFailed(f"{self._endpoint.host} sends more than an answer can be; it was ended.")
        if isinstance(error, httpx.ReadTimeout):
            return self._silent(self._patience.idle_s)
        connecting = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        what = "cannot be reached" if connecting else "broke the connection off"
        return Transient(
            ModelFailed(
                f"{self._endpoint.host} {what} ({type(error).__name__}).",
                hint="Check base_url in config.yaml, and that the endpoint runs." if connecting else "",
            )
        )


@asynccontextmanager
async def _exhausted(pieces: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Iterate, and leave nothing half iterated behind.

    httpx and httpcore nest generators that do not close each other. Going on under a cancelled scope takes all of them
    to the socket, where the cancellation ends them from the innermost out; trio warns of generators left to the
    garbage collector.
    """
    try:
        yield pieces
    finally:
        with trio.CancelScope(shield=True) as scope, suppress(httpx.HTTPError, httpx.StreamError):
            scope.cancel()
            async for _ in pieces:
                pass


def _certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


@final
class _Flood(httpx.TransportError):
    """A response without end, or a line without one."""


@final
class _Bounded(httpx.AsyncByteStream):
    """A response's bytes, bounded in length, in the length of a line, and in the seconds of silence `idle_s` allows."""

    def __init__(self, stream: object, idle_s: Callable[[], float]) -> None:
        if not isinstance(stream, httpx.AsyncByteStream):
            raise TypeError("a response of an asynchronous client has an asynchronous stream")
        self._stream = stream
        self._idle_s = idle_s

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        total = line = 0
        async with _exhausted(aiter(self._stream)) as pieces:
            while True:
                try:
                    with trio.fail_after(self._idle_s()):
                        piece = await anext(pieces, None)
                except trio.TooSlowError:
                    raise httpx.ReadTimeout("nothing came") from None
                if piece is None:
                    return
                total += len(piece)
                end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
                line = line + len(piece) if end < 0 else len(piece) - end - 1
                if total > RESPONSE_BYTES or line > LINE_BYTES:
                    raise _Flood("too long")
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
