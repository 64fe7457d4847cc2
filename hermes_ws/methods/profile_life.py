"""Making, changing and removing profiles. Each acts on the profile that it names, and on no other."""

from __future__ import annotations

from pathlib import Path

from hermes_ws.contract.errors import InvalidParams, PermissionDenied, ProfileUnknown
from hermes_ws.contract.methods.profile_life import (
    PROFILES_ADOPT,
    PROFILES_CLONE,
    PROFILES_CONFIGURE,
    PROFILES_CONFIRM,
    PROFILES_CREATE,
    PROFILES_DELETE,
    PROFILES_EXPORT,
    PROFILES_IMPORT,
    PROFILES_RENAME,
    ProfileCloneParams,
    ProfileConfigured,
    ProfileConfigureParams,
    ProfileConfirmed,
    ProfileCreateParams,
    ProfileDeleted,
    ProfileDeleteParams,
    ProfileExported,
    ProfileExportParams,
    ProfileImportParams,
    ProfileMade,
    ProfileNameParams,
    ProfileRenamed,
    ProfileRenameParams,
)
from hermes_ws.hosting.new_home import Made, receipt, seed_of
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall, ServerCall
from hermes_ws.scope import config_edit
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.private_file import write_private


@handles(PROFILES_CREATE)
async def create(call: ServerCall, params: ProfileCreateParams) -> ProfileMade:
    """An empty home with the model and the instructions that were given."""
    return _made(call, await call.host.life.create(_new(call, params.name), seed_of(params)))


@handles(PROFILES_CLONE)
async def clone(call: ServerCall, params: ProfileCloneParams) -> ProfileMade:
    """Parts of one home in a new one."""
    source = await _named(call, params.profile)
    return _made(call, await call.host.life.clone(source, _new(call, params.name), params.include))


@handles(PROFILES_CONFIGURE)
async def configure(call: ProfileCall, params: ProfileConfigureParams) -> ProfileConfigured:
    """Write what was given, and load the profile again."""
    runtime = call.runtime
    home = runtime.scope.home

    def write() -> None:
        if params.soul is not None:
            write_private(home.soul, params.soul.encode())
        for key, value in (("model.provider", params.provider), ("model.name", params.model)):
            if value is not None:
                config_edit.set_setting(home.config, key, value)

    await in_thread(runtime.limiter, write)
    scope = await runtime.reload()
    call.host.changed(scope.profile, gone=False)
    model = scope.config.model
    return ProfileConfigured(profile=scope.profile.text, provider=model.provider, model=model.name, loaded=scope.loaded)


@handles(PROFILES_RENAME)
async def rename(call: ServerCall, params: ProfileRenameParams) -> ProfileRenamed:
    """Close it, move it, and let it be opened under its new name."""
    old, new = await _named(call, params.profile), _new(call, params.name)
    await call.host.life.rename(old, new, params.wait_s)
    runtime = await call.host.open(new)
    return ProfileRenamed(id=runtime.scope.identity.id, name=new.text, home=str(runtime.home.path))


@handles(PROFILES_DELETE)
async def delete(call: ServerCall, params: ProfileDeleteParams) -> ProfileDeleted:
    """Close it, and remove it."""
    name = await _named(call, params.profile)
    if params.confirm != name.text:
        raise InvalidParams(f"To delete {name}, repeat its name.", path="confirm")
    await call.host.life.delete(name, params.wait_s)
    return ProfileDeleted(name=name.text)


@handles(PROFILES_ADOPT)
async def adopt(call: ServerCall, params: ProfileNameParams) -> ProfileMade:
    """A new identity for a copied home."""
    return _made(call, await call.host.life.adopt(await _named(call, params.profile)))


@handles(PROFILES_CONFIRM)
async def confirm(call: ServerCall, params: ProfileNameParams) -> ProfileConfirmed:
    """Switch on what was off, from the next load on, which is now."""
    name = await _named(call, params.profile)
    confirmed = await call.host.life.confirm(name)
    await (await call.host.open(name)).reload()
    return ProfileConfirmed(confirmed=confirmed)


@handles(PROFILES_EXPORT)
async def export(call: ServerCall, params: ProfileExportParams) -> ProfileExported:
    """Write the archive."""
    name = await _named(call, params.profile)
    written = await call.host.life.take_out(name, params.include, params.passphrase)
    return ProfileExported(
        path=str(written.path),
        size=written.size,
        sha256=written.sha256,
        files=written.files,
        sealed=params.passphrase is not None,
        skipped=list(written.skipped),
    )


@handles(PROFILES_IMPORT)
async def bring_in(call: ServerCall, params: ProfileImportParams) -> ProfileMade:
    """Unpack the archive into a new home."""
    path = Path(params.path)
    if not path.is_absolute():
        raise InvalidParams("The path of an archive is absolute.", path="path")
    name = _new(call, params.name)
    return _made(call, await call.host.life.bring_in(path, name, params.passphrase, take_secrets=params.secrets))


async def _named(call: ServerCall, text: str) -> ProfileName:
    """The own name of a profile that the caller may address."""
    name = await call.host.named(text)
    if not call.may_address(name.text):
        raise ProfileUnknown(f"There is no profile {text}.")
    return name


def _new(call: ServerCall, text: str) -> ProfileName:
    """A name for a new profile; only who may address all profiles makes one more."""
    if call.principal.profiles is not None:
        raise PermissionDenied("Only who may address every profile may make one.")
    try:
        return ProfileName.parse(text)
    except ProfileUnknown as refused:
        raise InvalidParams(refused.message, hint=refused.hint, path="name") from None


def _made(call: ServerCall, made: Made) -> ProfileMade:
    return receipt(made, call.host.root)
