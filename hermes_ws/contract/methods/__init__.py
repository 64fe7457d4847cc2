"""The declarations of the methods, one module per topic; those who carry them out are in modules of the same names."""

from __future__ import annotations

from typing import Final

TOPICS: Final = (
    "agents",
    "approvals",
    "audit",
    "blobs",
    "config",
    "connection",
    "forks",
    "insights",
    "mcp",
    "memory",
    "models",
    "mutations",
    "processes",
    "profile_life",
    "profiles",
    "prompts",
    "questions",
    "render",
    "rollback",
    "runtime",
    "schedules",
    "search",
    "session_views",
    "sessions",
    "skills",
    "slash",
    "subagents",
    "terminals",
    "thread_life",
    "threads",
    "tokens",
    "vault",
)
"""The modules that are read: `contract.catalog` takes the declarations of each, `methods.table` its handlers."""
