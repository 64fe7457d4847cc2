"""What a client is told about a session besides its conversation."""

from __future__ import annotations

from pydantic import JsonValue

from hermes_ws.journal.sessions import SessionRecord
from hermes_ws.scope.profile_scope import ProfileScope
from hermes_ws.session.launch import Launch


def session_info(record: SessionRecord, scope: ProfileScope) -> dict[str, JsonValue]:
    """Title, agent, directory, source, and the model that it speaks with. Times are seconds since 1970."""
    launch = Launch.read(record.launch)
    return {
        "title": record.title,
        "agent": record.agent,
        "cwd": record.cwd,
        "source": record.source,
        "provider": launch.provider or scope.config.model.provider,
        "model": launch.model or scope.config.model.name,
        "created_at": record.created_at,
        "archived": record.archived,
        "pinned": bool(record.pinned),
        "options": launch.options(),
    }
