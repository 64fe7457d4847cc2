"""Which model a turn speaks with, and with what it is reached: all from the scope, nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from pydantic import JsonValue

from hermes_ws.agent.definition import AgentDefinition
from hermes_ws.agent.models.endpoint import Endpoint, Patience
from hermes_ws.agent.models.fallback import FallbackModel
from hermes_ws.agent.models.loopback import LoopbackModel
from hermes_ws.agent.models.model import Model
from hermes_ws.agent.ports import ModelMachine
from hermes_ws.contract.errors import ModelFailed, ModelUnauthorised, ProfileUnusable
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import ProviderConfig

if TYPE_CHECKING:
    from hermes_ws.agent.models.chat_format import Reasoning
    from hermes_ws.agent.models.dialect import Dialect

OPENAI_KEY: Final = "OPENAI_API_KEY"
"""The name in .env that the provider `openai` takes its key from when none is set."""

ANTHROPIC_KEY: Final = "ANTHROPIC_API_KEY"
"""The name in .env that the provider `anthropic` takes its key from when none is set."""

KINDS: Final = ("loopback", "openai", "anthropic", "local")
"""The protocols that are spoken; each is also a provider that needs no description."""


@final
@dataclass(frozen=True, slots=True)
class Known:
    """Where a provider answers when nothing is set, and which name in .env its key has then."""

    url: str
    key: str


KNOWN: Final[Mapping[str, Known]] = MappingProxyType(
    {
        "openai": Known("https://api.openai.com/v1", OPENAI_KEY),
        "anthropic": Known("https://api.anthropic.com/v1", ANTHROPIC_KEY),
    }
)


@final
@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a session asked for, besides the model, and what it may use of the machine."""

    definition: AgentDefinition | None
    reasoning: str | None
    base_url: str | None
    api_key: str | None
    machine: ModelMachine | None


def choose(
    scope: ProfileScope,
    launch: Mapping[str, JsonValue],
    definition: AgentDefinition | None = None,
    *,
    machine: ModelMachine | None = None,
) -> Model:
    """The model of a turn: what the session asked for, else its agent, else the profile. The turn closes it.

    A session or an agent that names a model gets that one and no fall-back; so does one that brings an address or a
    key. Raises ModelFailed for a provider that is not configured, ModelUnauthorised for a key that is referred to and
    missing.
    """
    settings = scope.config.model
    provider = _named(launch, "provider") or (definition.provider if definition is not None else None)
    name = _named(launch, "model") or (definition.model if definition is not None else None)
    wanted = _Wanted(
        definition, _named(launch, "reasoning"), _named(launch, "base_url"), _named(launch, "api_key"), machine
    )
    if provider is None and name is None and wanted.base_url is None and wanted.api_key is None:
        first = _model(scope, settings.provider, settings.name, wanted)
        others = [_model(scope, each.provider, each.name, wanted) for each in settings.fallbacks]
        return FallbackModel([first, *others]) if others else first
    chosen = provider or settings.provider
    if name is None and chosen not in (settings.provider, "loopback", "local"):
        raise ModelFailed(f"Provider {chosen} was chosen without a model.", hint="Name the model as well.")
    return _model(scope, chosen, name or settings.name, wanted)


def _model(scope: ProfileScope, provider: str, name: str, wanted: _Wanted) -> Model:
    config = scope.config.providers.get(provider, ProviderConfig())
    kind = config.kind or provider
    if kind == "loopback":
        return LoopbackModel(name)
    if kind not in KINDS:
        known = (*KINDS, *scope.config.providers)
        near = get_close_matches(provider, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        raise ModelFailed(
            f"There is no provider {provider[:100]!r}.{guess}",
            hint="Describe it under providers in config.yaml, with `kind: openai` or `kind: anthropic`.",
        )
    settings, definition, machine = scope.config.model, wanted.definition, wanted.machine
    asked = wanted.reasoning or (definition.reasoning if definition is not None else None)
    reasoning: Reasoning | None = _reasoning(asked) or settings.reasoning
    patience = Patience(settings.connect_s, settings.first_piece_s, settings.idle_s)
    if kind == "local":
        if machine is None:
            raise ModelFailed("A model of this machine can only be used by a session.")
        from hermes_ws.agent.models.local import LocalModel

        return LocalModel(name, machine, patience=patience, redact=scope.secrets.redact, max_tokens=settings.max_tokens)
    # Imported here: the HTTP client takes 200 ms and 20 MiB, which a server without such a model need not have.
    from hermes_ws.agent.models.http_model import HttpModel

    minted = config.key_command and wanted.api_key is None and wanted.base_url is None
    mint = None
    if minted and machine is not None:
        env = {each: scope.secrets.get(each) or "" for each in config.key_env}
        mint = partial(machine.mint, provider, config.key_command, env)
    return HttpModel(
        name,
        _own(endpoint(scope, provider, config, keyless=bool(minted) or wanted.api_key is not None), wanted),
        _dialect(kind, reasoning, settings.temperature, settings.max_tokens),
        patience=patience,
        redact=scope.secrets.redact,
        mint=mint,
        provider=provider,
    )


def _dialect(kind: str, reasoning: Reasoning | None, temperature: float | None, max_tokens: int | None) -> Dialect:
    if kind == "anthropic":
        from hermes_ws.agent.models.anthropic import anthropic

        return anthropic(reasoning=reasoning, temperature=temperature, max_tokens=max_tokens)
    from hermes_ws.agent.models.openai import openai

    return openai(reasoning=reasoning, temperature=temperature, max_tokens=max_tokens)


def _reasoning(text: str | None) -> Reasoning | None:
    match text:
        case "none" | "low" | "medium" | "high":
            return text
        case _:
            return None


def _own(found: Endpoint, wanted: _Wanted) -> Endpoint:
    """The endpoint with what the session brought. The profile's key and headers are not sent to another's address."""
    if wanted.base_url is not None:
        host = _host(wanted.base_url, "base_url")
        found = Endpoint(wanted.base_url, host, None, {}, "the session's api_key")
    if wanted.api_key is not None:
        found = replace(found, api_key=wanted.api_key, key_source="the session's api_key")
    return found


def endpoint(scope: ProfileScope, provider: str, config: ProviderConfig, *, keyless: bool = False) -> Endpoint:
    """Where a provider answers, with its references expanded from this profile's secrets and no other's.

    `keyless` where the key comes from elsewhere.
    """
    where = f"providers.{provider}"
    known = KNOWN.get(config.kind or provider, KNOWN["openai"])
    try:
        base_url = known.url
        if config.base_url is not None:
            base_url = scope.secrets.expand(config.base_url, where=f"{where}.base_url").strip()
        headers = {
            name: scope.secrets.expand(value, where=f"{where}.headers.{name}") for name, value in config.headers.items()
        }
        key: str | None = None
        key_source = f"{where}.key_command in config.yaml"
        if config.api_key is not None:
            key = scope.secrets.expand(config.api_key, where=f"{where}.api_key").strip()
            key_source = f"{where}.api_key in config.yaml and the name in .env that it refers to"
        elif not config.key_command:
            # Only the provider's own address gets its key without being told to: another's would learn it.
            key = scope.secrets.get(known.key) if config.base_url is None else None
            key_source = f"{known.key} in .env" if config.base_url is None else f"{where}.api_key in config.yaml"
    except ProfileUnusable as missing:
        raise ModelUnauthorised(missing.message, hint=missing.hint) from None
    if config.base_url is None and not key and not keyless:
        raise ModelUnauthorised(
            f"There is no key for provider {provider}.",
            hint=f"Put {known.key}=… into the profile's .env, or set {where}.api_key in config.yaml.",
        )
    return Endpoint(base_url, _host(base_url, f"{where}.base_url"), key or None, headers, key_source)


def _host(base_url: str, where: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelFailed(f"{where} is not an address.", hint="Write one that begins with http:// or https://.")
    return parts.hostname


def _named(launch: Mapping[str, JsonValue], key: str) -> str | None:
    value = launch.get(key)
    return value if isinstance(value, str) and value else None
