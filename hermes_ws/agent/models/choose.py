"""Which model a turn speaks with, and with what it is reached: all from the scope, nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.models.endpoint import Endpoint, Patience
from hermes_ws.agent.models.fallback import FallbackModel
from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.models.model import Model
from hermes_ws.contract.errors import ModelFailed, ModelUnauthorised, ProfileUnusable
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import ProviderConfig

OPENAI_URL: Final = "https://api.openai.com/v1"
"""Where the provider `openai` answers when no base_url is set."""

OPENAI_KEY: Final = "OPENAI_API_KEY"
"""The name in .env that the provider `openai` takes its key from when none is set."""


def choose(scope: ProfileScope, launch: Mapping[str, JsonValue], definition: AgentDefinition | None = None) -> Model:
    """The model of a turn: what the session asked for, else its agent, else the profile. The turn closes it.

    A session or an agent that names a model gets that one and no fall-back. Raises ModelFailed for a provider that is
    not configured, ModelUnauthorised for a key that is referred to and missing.
    """
    settings = scope.config.model
    provider = _named(launch, "provider") or (definition.provider if definition is not None else None)
    name = _named(launch, "model") or (definition.model if definition is not None else None)
    if provider is None and name is None:
        first = _model(scope, settings.provider, settings.name, definition)
        others = [_model(scope, each.provider, each.name, definition) for each in settings.fallbacks]
        return FallbackModel([first, *others]) if others else first
    chosen = provider or settings.provider
    if name is None and chosen not in (settings.provider, "loopback"):
        raise ModelFailed(f"Provider {chosen} was chosen without a model.", hint="Name the model as well.")
    return _model(scope, chosen, name or settings.name, definition)


def _model(scope: ProfileScope, provider: str, name: str, definition: AgentDefinition | None) -> Model:
    config = scope.config.providers.get(provider)
    kind = (config.kind if config is not None else None) or provider
    if kind == "loopback":
        return LoopbackModel(name)
    if kind != "openai":
        known = ("loopback", "openai", *scope.config.providers)
        near = get_close_matches(provider, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise ModelFailed(
            f"There is no provider {provider[:100]!r}.{guess}",
            hint="Describe it under providers in config.yaml, with `kind: openai`.",
        )
    # Imported here: the HTTP client takes 200 ms and 20 MiB, which a server without such a model need not have.
    from hermes_ws.agent.models.openai import OpenAIModel

    settings = scope.config.model
    return OpenAIModel(
        name,
        endpoint(scope, provider, config or ProviderConfig()),
        patience=Patience(settings.connect_s, settings.first_piece_s, settings.idle_s),
        redact=scope.secrets.redact,
        reasoning=(definition.reasoning if definition is not None else None) or settings.reasoning,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )


def endpoint(scope: ProfileScope, provider: str, config: ProviderConfig) -> Endpoint:
    """Where a provider answers, with its references expanded from this profile's secrets and no other's."""
    where = f"providers.{provider}"
    try:
        if config.base_url is not None:
            base_url = scope.secrets.expand(config.base_url, where=f"{where}.base_url").strip()
        else:
            base_url = OPENAI_URL
        headers = {
            name: scope.secrets.expand(value, where=f"{where}.headers.{name}") for name, value in config.headers.items()
        }
        if config.api_key is not None:
            key = scope.secrets.expand(config.api_key, where=f"{where}.api_key").strip()
            key_source = f"{where}.api_key in config.yaml and the name in .env that it refers to"
        else:
            # Only OpenAI's own address gets OpenAI's key without being told to: another's would learn it.
            key = scope.secrets.get(OPENAI_KEY) if config.base_url is None else None
            key_source = f"{OPENAI_KEY} in .env" if config.base_url is None else f"{where}.api_key in config.yaml"
    except ProfileUnusable as missing:
        raise ModelUnauthorised(missing.message, hint=missing.hint) from None
    if config.base_url is None and not key:
        raise ModelUnauthorised(
            f"There is no key for provider {provider}.",
            hint=f"Put {OPENAI_KEY}=… into the profile's .env, or set {where}.api_key in config.yaml.",
        )
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelFailed(
            f"{where}.base_url is not an address.", hint="Write one that begins with http:// or https://."
        )
    return Endpoint(base_url, parts.hostname, key or None, headers, key_source)


def _named(launch: Mapping[str, JsonValue], key: str) -> str | None:
    value = launch.get(key)
    return value if isinstance(value, str) and value else None
