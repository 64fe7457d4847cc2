"""A profile's settings and secrets."""

from __future__ import annotations

import hashlib
import inspect
import secrets
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, cast

import orjson
from pydantic import BaseModel, JsonValue

from hermes_ws.contract.errors import ConsentRequired, InvalidParams, NotFound
from hermes_ws.contract.methods.config import (
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_SHOW,
    RELOAD_ENV,
    SECRETS_NAMES,
    SECRETS_SET,
    SETUP_STATUS,
    ConfigGetParams,
    ConfigSection,
    ConfigSet,
    ConfigSetParams,
    ConfigShown,
    ConfigValue,
    EnvReloaded,
    SecretNames,
    SecretSet,
    SecretSetParams,
    SettingRow,
    SetupStatus,
)
from hermes_ws.contract.methods.mutations import MutateParams
from hermes_ws.contract.methods.profiles import ProfileParams
from hermes_ws.methods.editing import edit
from hermes_ws.methods.handler import handles
from hermes_ws.methods.models import costs, provider_row
from hermes_ws.methods.ports import ProfileCall
from hermes_ws.scope import config_edit
from hermes_ws.scope.config import ProfileConfig, public_view
from hermes_ws.scope.config_shape import shapes
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope

CONSENT_BYTES: Final = 12
"""Of the token that stands for one request: it is told apart from others, and kept from nobody."""

SESSION_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model.name": "model",
        "model.provider": "provider",
        "agent.max_turns": "max_turns",
        "agent.toolsets": "toolsets",
        "yolo": "yolo",
    }
)
"""The settings that a session can have of its own, by what they are called in its launch request."""


@handles(CONFIG_GET)
def get(call: ProfileCall, params: ConfigGetParams) -> ConfigValue:
    """The setting as written in the profile's own file, or its default. References to secrets stay references."""
    scope = call.runtime.scope
    return ConfigValue(
        profile=scope.profile.text,
        key=params.key,
        value=public_view(scope.config, params.key or ""),
        source=str(scope.home.config),
    )


@handles(CONFIG_SET)
async def set_(call: ProfileCall, params: ConfigSetParams) -> ConfigSet:
    """Write it into the file and load the profile again; or give it to the session alone."""
    if params.scope == "session":
        return await _set_in_session(call, params)
    home = call.runtime.home
    _ours(params.key)
    await _agreed(call, params, await edit(call, home.config, config_edit.preview, params.key, params.value))
    await edit(call, home.config, config_edit.set_setting, params.key, params.value)
    scope = await call.runtime.reload()
    return _is_set(scope, params)


async def _set_in_session(call: ProfileCall, params: ConfigSetParams) -> ConfigSet:
    """What the session has of its own is part of the session, and changed as any other part of it."""
    assert params.session_id is not None
    name = SESSION_SETTINGS.get(params.key)
    if name is None:
        known = ", ".join(SESSION_SETTINGS)
        raise InvalidParams(f"A session has no {params.key} of its own.", hint=f"It can have {known}.", path="key")
    scope = call.runtime.scope
    if name in ("model", "provider"):
        asked: JsonValue = params.value if params.value is not None else public_view(scope.config, params.key)
        model = scope.config.model.model_copy(update={"name" if name == "model" else name: asked})
        await _agreed(call, params, scope.config.model_copy(update={"model": model}))
    session = await call.runtime.sessions.get(params.session_id)
    await call.runtime.sessions.mutate(
        MutateParams(
            session_id=params.session_id,
            request_id=f"config-{secrets.token_hex(8)}",
            expected_revision=session.record.revision,
            operation="configure",
            payload={name: params.value},
        ),
        call.principal.name,
    )
    if name == "yolo":
        return ConfigSet(profile=scope.profile.text, key=params.key, value=bool(params.value), scope="session")
    value = params.value if params.value is not None else public_view(scope.config, params.key)
    return ConfigSet(profile=scope.profile.text, key=params.key, value=value, scope="session")


async def _agreed(call: ProfileCall, params: ConfigSetParams, after: ProfileConfig) -> None:
    """Raises `ConsentRequired` when from now on money is spent that was not, and nobody has agreed to that."""
    scope = call.runtime.scope
    chosen = (after.model.provider, after.model.name)
    if chosen == (scope.config.model.provider, scope.config.model.name) or not costs(after):
        return
    content = orjson.dumps([call.facts.instance_id, call.principal.name, scope.identity.id, params.session_id, chosen])
    token = hashlib.blake2b(content, digest_size=CONSENT_BYTES).hexdigest()
    if params.consent != token:
        raise ConsentRequired(f"{chosen[1]} at {chosen[0]} may cost money with every prompt. Use it?", consent=token)


@handles(CONFIG_SHOW)
async def show(call: ProfileCall, params: ProfileParams) -> ConfigShown:
    """Everything that can be set, section by section."""
    scope = call.runtime.scope
    told = await in_thread(call.runtime.limiter, shapes)
    return ConfigShown(
        profile=scope.profile.text,
        source=str(scope.home.config),
        sections=list(_sections(scope.config, told)),
        foreign=list(scope.config.foreign),
    )


def _sections(config: ProfileConfig, told: Mapping[str, dict[str, JsonValue]]) -> Iterator[ConfigSection]:
    view = cast("dict[str, JsonValue]", public_view(config))
    defaults = cast("dict[str, JsonValue]", public_view(ProfileConfig()))
    single: list[SettingRow] = []
    for name in ProfileConfig.model_fields:
        if name == "foreign":
            continue
        section, shape = cast("object", getattr(config, name)), told[name]
        if isinstance(section, BaseModel):
            values, usual = cast("dict[str, JsonValue]", view[name]), cast("dict[str, JsonValue]", defaults[name])
            inner = cast("dict[str, dict[str, JsonValue]]", shape["properties"])
            rows = [
                _row(f"{name}.{key}", values[key], usual[key], inner[key], key in section.model_fields_set)
                for key in type(section).model_fields
            ]
            yield ConfigSection(name=name, doc=inspect.getdoc(type(section)) or "", settings=rows)
        else:
            single.append(_row(name, view[name], defaults[name], shape, name in config.model_fields_set))
    yield ConfigSection(name="", doc="Settings that stand by themselves.", settings=single)


def _row(key: str, value: JsonValue, usual: JsonValue, shape: dict[str, JsonValue], written: bool) -> SettingRow:
    doc = shape.get("description")
    return SettingRow(
        key=key,
        value=value,
        default=value == usual,
        doc=doc if isinstance(doc, str) else "",
        usual=usual,
        written=written,
        shape=shape,
    )


@handles(SETUP_STATUS)
async def status(call: ProfileCall, params: ProfileParams) -> SetupStatus:
    """What the files tell; nothing is sent anywhere. `model.check` asks the provider itself."""
    scope = call.runtime.scope
    row, hint = provider_row(scope, scope.config.model.provider, current=True)
    return SetupStatus(
        profile=scope.profile.text,
        ready=row.authenticated,
        provider_configured=row.slug != "loopback",
        inference_provider=row.slug,
        model=scope.config.model.name,
        error=row.warning,
        hint=hint,
    )


@handles(RELOAD_ENV)
async def reload(call: ProfileCall, params: ProfileParams) -> EnvReloaded:
    """Load the profile again; executions that run keep what they began with."""
    before = call.runtime.scope
    after = await call.runtime.reload()
    names = before.secrets.names() | after.secrets.names()
    changed = sum(1 for name in names if before.secrets.get(name) != after.secrets.get(name))
    return EnvReloaded(profile=after.profile.text, updated=changed, problems=list(call.runtime.problems))


@handles(SECRETS_SET)
async def set_secret(call: ProfileCall, params: SecretSetParams) -> SecretSet:
    """Write it and load the profile again. The answer has the name alone."""
    await edit(call, call.runtime.home.env, config_edit.set_secret, params.name, params.value)
    scope = await call.runtime.reload()
    return SecretSet(profile=scope.profile.text, name=params.name, set=params.name in scope.secrets.names())


@handles(SECRETS_NAMES)
async def secret_names(call: ProfileCall, params: ProfileParams) -> SecretNames:
    """What there is, without what it is."""
    scope = call.runtime.scope
    names = sorted(scope.secrets.names())
    plain = [name for name in names if name in scope.config.secrets.plain]
    return SecretNames(profile=scope.profile.text, names=names, plain=plain)


def _ours(key: str) -> None:
    section = key.partition(".")[0]
    if section not in ProfileConfig.model_fields or section == "foreign":
        raise NotFound(f"There is no setting {key}.", hint="config.show lists the settings there are.", key=key)


def _is_set(scope: ProfileScope, params: ConfigSetParams) -> ConfigSet:
    try:
        value = public_view(scope.config, params.key)
    except NotFound:
        value = None  # taken out of a section whose entries have names of their own
    return ConfigSet(profile=scope.profile.text, key=params.key, value=value, scope="profile")
