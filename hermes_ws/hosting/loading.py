"""What a profile is now: its scope, loaded as a whole and replaced as a whole, and the context that is bound to it.

The runtime starts every task of the profile in a copy of that context: this is one of the three places that bind. What
runs keeps the scope that it began with; whoever outlives a load asks again.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import final

import trio

from hermes_ws.contract.errors import Draining
from hermes_ws.hosting import secret_sources
from hermes_ws.hosting.runtime_life import Surroundings
from hermes_ws.scope.current import Bound, bind_into, in_thread
from hermes_ws.scope.home import ProfileHome
from hermes_ws.scope.identity import ProfileName
from hermes_ws.scope.profile_scope import FileState, ProfileScope, fingerprint, load_scope


@final
class Loading:
    """The loads of one open profile, one after the other. `changed` is called with each but the first, after the
    one before."""

    def __init__(
        self,
        name: ProfileName,
        home: ProfileHome,
        around: Surroundings,
        limiter: trio.CapacityLimiter,
        changed: Callable[[ProfileScope, ProfileScope], None],
    ) -> None:
        self.context = contextvars.Context()
        """Nothing is bound in it before the first load."""
        self.failed_sources: tuple[str, ...] = ()
        """The secret sources that gave nothing at the last load, with the reasons; asked again at the next use."""
        self._name = name
        self._home = home
        self._around = around
        self._limiter = limiter
        self._changed = changed
        self._turn = trio.Lock()
        self._from: tuple[FileState, FileState] = (None, None)
        self._scope: ProfileScope | None = None

    @property
    def scope(self) -> ProfileScope:
        """The scope as it was loaded last. Raises `Draining` before the first load."""
        if self._scope is None:
            raise Draining("The profile is not open.", hint="Try again: it opens at the next use.")
        return self._scope

    async def fresh(self) -> ProfileScope:
        """The scope, loaded again when config.yaml or .env changed, or a secret source has failed.

        Raises `ProfileUnusable` when they are unusable now: nothing goes on with settings that are no longer there.
        """
        async with self._turn:
            state = await in_thread(self._limiter, fingerprint, self._home)
            if state != self._from or self.failed_sources:
                await self._load(state)
            return self.scope

    async def again(self) -> ProfileScope:
        """Load the scope, whether it changed or not. Raises `ProfileUnusable`, and then the one before stays."""
        async with self._turn:
            await self._load(await in_thread(self._limiter, fingerprint, self._home))
            return self.scope

    async def _load(self, state: tuple[FileState, FileState]) -> None:
        root, before = self._around.root, self._scope
        loaded = 1 if before is None else before.loaded + 1
        launch_secrets = self._around.launch_secrets if self._name == root.launch else None
        scope = await in_thread(
            self._limiter,
            lambda: load_scope(
                self._name, self._home, launch_secrets=launch_secrets, loaded=loaded, homes=root.homes_paths()
            ),
        )
        asked = secret_sources.surrounds(self._around, self._name, self._limiter)
        gathered = await secret_sources.gather(scope, asked)
        if gathered.values:
            scope = scope.with_sources(gathered.values)
        context = contextvars.Context()
        bind_into(context, Bound(scope, None, None, None))
        self.failed_sources = gathered.failed
        self._scope, self.context, self._from = scope, context, state
        if before is not None:
            self._changed(before, scope)
