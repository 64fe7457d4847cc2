"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# A busy machine must not fail a test: how long one example takes proves nothing.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
