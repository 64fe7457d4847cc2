"""What the catalog of failures is proved with: homes that are served, in this process and in one of their own."""

from __future__ import annotations

from tests.e2e.conftest import base_environment, shared_server
from tests.session.conftest import house, people, runtime

__all__ = ["base_environment", "house", "people", "runtime", "shared_server"]
