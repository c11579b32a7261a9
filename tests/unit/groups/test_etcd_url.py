from __future__ import annotations

import pytest

from warren.errors import ConfigError
from warren.groups.coordination.etcd_link import Endpoint
from warren.groups.coordination.etcd_url import EtcdAddress


@pytest.mark.parametrize(
    ("url", "endpoints"),
    [
        ("etcd://one", ["http://one:2379"]),
        ("etcd://one:1/", ["http://one:1"]),
        ("etcd://one:1,two,three:3", ["http://one:1", "http://two:2379", "http://three:3"]),
        ("etcds://one", ["https://one:2379"]),
        ("http://one:1,http://two:2", ["http://one:1", "http://two:2"]),
        ("https://[::1]:5,two", ["https://[::1]:5", "https://two:2379"]),
    ],
)
def test_a_url_names_one_or_several_endpoints(url: str, endpoints: list[str]) -> None:
    assert list(map(str, EtcdAddress.parse(url).endpoints)) == endpoints


def test_a_url_holds_a_login_and_files_and_does_not_show_the_password() -> None:
    found = EtcdAddress.parse("etcds://ann:p%40ss@one?ca_file=/ca.pem&cert_file=/c&key_file=/k")
    assert found.endpoints == (Endpoint("one", 2379, tls=True),)
    assert (found.user, found.password) == ("ann", "p@ss")
    assert (found.ca_file, found.cert_file, found.key_file) == ("/ca.pem", "/c", "/k")
    assert "p@ss" not in repr(found)


@pytest.mark.parametrize(
    "url",
    ["", "one:2379", "etcd://", "ftp://one", "etcd://one:none", "etcd://one,,two", "etcd://one/x"],
)
def test_what_is_no_such_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is not like etcd://host:2379"):
        EtcdAddress.parse(url)


def test_a_refusal_does_not_show_the_password() -> None:
    with pytest.raises(ConfigError) as refused:
        EtcdAddress.parse("etcd://ann:secret@one:none")
    assert "secret" not in str(refused.value)


def test_an_unknown_part_is_named() -> None:
    with pytest.raises(ConfigError, match="no such part: cafile; known: ca_file"):
        EtcdAddress.parse("etcds://one?cafile=/ca.pem")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"/no/such\.pem: No such file"):
        EtcdAddress.parse("etcds://one?ca_file=/no/such.pem").tls_context()


def test_without_tls_there_is_no_context() -> None:
    assert EtcdAddress.parse("etcd://one").tls_context() is None
