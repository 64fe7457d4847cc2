"""The providers that a profile can speak with, and their keys."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from pydantic import JsonValue

from hermes_ws.agent.models.choose import OPENAI_KEY, endpoint
from hermes_ws.contract.errors import InvalidParams, ModelFailed, NotFound
from hermes_ws.contract.methods.models import (
    MODEL_CHECK,
    MODEL_DISCONNECT,
    MODEL_OPTIONS,
    MODEL_SAVE_KEY,
    Checked,
    CheckParams,
    Disconnected,
    DisconnectParams,
    KeySaved,
    ModelOptions,
    OptionsParams,
    Provider,
    SaveKeyParams,
)
from hermes_ws.methods.editing import edit
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope import config_edit
from hermes_ws.scope.config import BUILT_IN_PROVIDERS, ProfileConfig
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.scope.sections import ProviderConfig
from hermes_ws.session.launch import Launch

LOOPBACK: Final = "loopback"
"""The provider that is built in, and needs nothing."""

CHECK_S: Final = 15.0
"""Seconds that a provider has to tell its models: somebody waits and looks."""

MODELS: Final = 1000
"""Models of one provider that are told."""

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@handles(MODEL_OPTIONS)
async def options(call: ProfileCall, params: OptionsParams) -> ModelOptions:
    """What the profile's files tell; nobody is asked."""
    scope = call.runtime.scope
    provider, model = scope.config.model.provider, scope.config.model.name
    if params.session_id is not None:
        session = await call.runtime.sessions.get(params.session_id)
        launch = Launch.read(session.record.launch)
        provider, model = launch.provider or provider, launch.model or model
    slugs = dict.fromkeys((*BUILT_IN_PROVIDERS, *scope.config.providers))
    rows = [provider_row(scope, slug, current=slug == provider)[0] for slug in slugs]
    return ModelOptions(providers=rows, provider=provider, model=model)


@handles(MODEL_SAVE_KEY)
async def save_key(call: ProfileCall, params: SaveKeyParams) -> KeySaved:
    """The key goes into .env first: a reference to nothing would make the profile unusable."""
    scope, home = call.runtime.scope, call.runtime.home
    if params.slug == LOOPBACK:
        raise InvalidParams("This provider needs no key.", path="slug")
    config = scope.config.providers.get(params.slug)
    name = _key_name(params.slug, config)
    await edit(call, home.env, config_edit.set_secret, name, params.api_key)
    if config is None and params.slug not in BUILT_IN_PROVIDERS:
        described: dict[str, JsonValue] = {"kind": "openai", "api_key": f"${{{name}}}"}
        if params.base_url is not None:
            described["base_url"] = params.base_url
        await edit(call, home.config, config_edit.set_setting, f"providers.{params.slug}", described)
    elif config is not None and config.api_key != f"${{{name}}}":
        await edit(call, home.config, config_edit.set_setting, f"providers.{params.slug}.api_key", f"${{{name}}}")
    if params.base_url is not None and (config is not None or params.slug in BUILT_IN_PROVIDERS):
        # A key that was given for this address; the two are set together, so that no other address gets it.
        await edit(call, home.config, config_edit.set_setting, f"providers.{params.slug}.base_url", params.base_url)
        await edit(call, home.config, config_edit.set_setting, f"providers.{params.slug}.api_key", f"${{{name}}}")
    scope = await call.runtime.reload()
    row, _ = provider_row(scope, params.slug, current=params.slug == scope.config.model.provider)
    return KeySaved(provider=row)


@handles(MODEL_DISCONNECT)
async def disconnect(call: ProfileCall, params: DisconnectParams) -> Disconnected:
    """Take the reference away first, then the key, unless another provider uses it as well."""
    scope, home = call.runtime.scope, call.runtime.home
    config = _known(scope, params.slug)
    name = _key_name(params.slug, config)
    had = scope.secrets.get(name) is not None
    if config is not None and config.api_key is not None:
        await edit(call, home.config, config_edit.set_setting, f"providers.{params.slug}.api_key", None)
    others = (each.api_key or "" for slug, each in scope.config.providers.items() if slug != params.slug)
    if had and not any(name in _REFERENCE.findall(other) for other in others):
        await edit(call, home.env, config_edit.set_secret, name, None)
    await call.runtime.reload()
    return Disconnected(slug=params.slug, name=params.slug, disconnected=had)


@handles(MODEL_CHECK)
async def check(call: ProfileCall, params: CheckParams) -> Checked:
    """Ask the provider for its models. What it says about a refusal is told with the profile's secrets covered."""
    scope = call.runtime.scope
    slug = params.slug or scope.config.model.provider
    config = _known(scope, slug)
    if _kind(slug, config) == LOOPBACK:
        return Checked(slug=slug, ok=True, models=[LOOPBACK])
    from hermes_ws.agent.models.listing import list_models

    try:
        models = await list_models(endpoint(scope, slug, config or ProviderConfig()), _kind(slug, config), CHECK_S)
    except ModelFailed as failed:
        error = scope.secrets.redact(failed.message)
        return Checked(slug=slug, ok=False, models=[], error=error, hint=failed.hint or None)
    return Checked(slug=slug, ok=True, models=models[:MODELS])


def provider_row(scope: ProfileScope, slug: str, *, current: bool) -> tuple[Provider, str | None]:
    """A provider as the profile's files have it; and what to do when something is missing."""
    config = scope.config.providers.get(slug)
    kind = _kind(slug, config)
    warning: str | None = None
    hint: str | None = None
    if kind != LOOPBACK:
        try:
            endpoint(scope, slug, config or ProviderConfig())
        except ModelFailed as missing:
            warning, hint = missing.message, missing.hint
    names = [scope.config.model.name] if slug == scope.config.model.provider else []
    names += [each.name for each in scope.config.model.fallbacks if each.provider == slug]
    names += [] if config is None else list(config.prices)
    return (
        Provider(
            slug=slug,
            name=slug,
            kind=kind,
            is_current=current,
            authenticated=warning is None,
            key_env=None if kind == LOOPBACK else _key_name(slug, config),
            models=list(dict.fromkeys(names)) or ([LOOPBACK] if kind == LOOPBACK else []),
            warning=warning,
        ),
        hint,
    )


def costs(config: ProfileConfig) -> bool:
    """Whether prompts may cost money: the model is neither built in nor on this machine, and has a price or none that
    is known.
    """
    slug = config.model.provider
    described = config.providers.get(slug)
    if _kind(slug, described) in (LOOPBACK, "local"):
        return False
    if described is not None and described.base_url is not None and _is_here(described.base_url):
        return False
    price = config.model.price
    return price is None or price.input > 0 or price.output > 0


def _is_here(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _known(scope: ProfileScope, slug: str) -> ProviderConfig | None:
    config = scope.config.providers.get(slug)
    if config is None and slug not in BUILT_IN_PROVIDERS:
        raise NotFound(f"There is no provider {slug}.", hint="model.options lists those there are.")
    return config


def _kind(slug: str, config: ProviderConfig | None) -> str:
    return (config.kind if config is not None else None) or slug


def _key_name(slug: str, config: ProviderConfig | None) -> str:
    """The name in .env that the provider's key stands under, or is to."""
    if config is not None and config.api_key is not None:
        found = _REFERENCE.fullmatch(config.api_key)
        if found is not None:
            return found[1]
    if slug == "openai":
        return OPENAI_KEY
    return re.sub(r"[^A-Z0-9]", "_", slug.upper()) + "_API_KEY"
