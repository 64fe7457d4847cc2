"""What a turn may look up in its profile: the skills of the home, and what was said in its sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from hermes_ws.agent import skills
from hermes_ws.agent.ports import Said
from hermes_ws.journal.search import search
from hermes_ws.scope.current import in_thread
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.ports import Runtime


@final
class ProfileLibrary:
    """The `Library` of one execution, of the bound home and no other."""

    def __init__(self, runtime: Runtime, scope: ProfileScope) -> None:
        self._runtime = runtime
        self._scope = scope

    async def skills(self) -> Sequence[tuple[str, str]]:
        """The skills that can be used, by name."""
        found = await in_thread(self._runtime.limiter, skills.list, self._scope.home)
        return [(each.name, each.description) for each in found if not each.problem]

    async def skill(self, name: str, file: str | None) -> str:
        """A skill as a model is given it, or one of its files. Raises `NotFound`, `ProfileUnusable`."""
        found = await in_thread(self._runtime.limiter, skills.view, self._scope.home, name, file)
        return found.text if file is not None else skills.rendered(found)

    async def search(self, query: str, limit: int) -> Sequence[Said]:
        """Messages that have all these words, the best matches first."""
        hits = await self._runtime.journal.read(lambda connection: search(connection, query, limit))
        return [Said(hit.session_id, hit.title or "", hit.role, hit.updated_at, hit.snippet) for hit in hits]
