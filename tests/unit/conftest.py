"""Unit tests judge what happens, not how long a busy machine takes for it."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("warren", deadline=None, print_blob=True)
settings.load_profile("warren")
