"""Certificates for the tests that use TLS."""

from __future__ import annotations

from tests.support.certificate_fixtures import ours, shown, theirs

__all__ = ["ours", "shown", "theirs"]
