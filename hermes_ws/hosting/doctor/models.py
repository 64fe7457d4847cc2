"""Whether the models' endpoints can be reached: a connection is opened and closed, and no key is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlsplit

import trio

from hermes_ws.contract.errors import HermesError
from hermes_ws.hosting.doctor.finding import Finding
from hermes_ws.scope.config import load_config
from hermes_ws.scope.home import HomesRoot

REACH_WITHIN_S: Final = 3.0
"""Seconds: a machine that is on answers in a tenth of that, from anywhere."""

PORTS: Final = (("https", 443), ("http", 80))


async def look_at_models(root: HomesRoot) -> AsyncIterator[Finding]:
    """The endpoint of the model of each home, each endpoint once."""
    seen: set[tuple[str, int]] = set()
    for name in root.names():
        try:
            config = load_config(root.find(name).config)
        except HermesError:
            continue  # Said where homes are looked at.
        provider = config.providers.get(config.model.provider)
        address = provider.base_url if provider is not None else None
        if not address or "${" in address:
            continue
        try:
            parts = urlsplit(address)
            host, port = parts.hostname or "", parts.port or dict(PORTS).get(parts.scheme, 443)
        except ValueError:
            yield Finding("model", name.text, "error", "Its base_url is no address.", "Write it as https://host/v1.")
            continue
        if (host, port) in seen:
            continue
        seen.add((host, port))
        yield await _reach(name.text, host, port)


async def _reach(name: str, host: str, port: int) -> Finding:
    try:
        with trio.fail_after(REACH_WITHIN_S):
            stream = await trio.open_tcp_stream(host, port)
            await stream.aclose()
    except (OSError, trio.TooSlowError):
        return Finding(
            "model", name, "warning", f"{host}:{port} does not answer.",
            "Start the model's server, or mend providers.*.base_url and the network.",
        )  # fmt: skip
    return Finding("model", name, "ok", f"{host}:{port} answers.")
