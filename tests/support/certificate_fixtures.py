"""Certificates for tests that use TLS; a conftest imports those it wants."""

from __future__ import annotations

import pytest

from tests.support.certificates import Authority, Certificate


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"), "another CA")


@pytest.fixture(scope="module")
def shown(ours: Authority) -> Certificate:
    """The broker's certificate."""
    return ours.issue("broker", "/CN=localhost")
