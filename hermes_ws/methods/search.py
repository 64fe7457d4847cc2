"""Searching what was said."""

from __future__ import annotations

from hermes_ws.contract.methods.search import SESSION_SEARCH, SearchHit, SearchHits, SearchParams
from hermes_ws.journal.search import search
from hermes_ws.methods.handler import handles
from hermes_ws.methods.ports import ProfileCall


@handles(SESSION_SEARCH)
async def search_messages(call: ProfileCall, params: SearchParams) -> SearchHits:
    """Ask the bound profile's own index."""
    found = await call.runtime.journal.read(lambda connection: search(connection, params.query, params.limit))
    return SearchHits(
        hits=[
            SearchHit(
                session_id=hit.session_id,
                thread_id=hit.thread_id,
                message_id=hit.message_id,
                role=hit.role,
                title=hit.title,
                archived=hit.archived,
                updated_at=hit.updated_at,
                snippet=hit.snippet,
                matches=list(hit.matches),
            )
            for hit in found
        ]
    )
