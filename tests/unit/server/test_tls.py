from __future__ import annotations

import pytest

from warren.server.tls import certificate_name


def certificate(*subject: str) -> dict[str, object]:
    """As ``SSLObject.getpeercert`` gives it: ``"commonName=a+organizationName=b"`` is one part."""
    rdns = (tuple(tuple(pair.split("=", 1)) for pair in rdn.split("&")) for rdn in subject)
    return {"subject": tuple(rdns)}


# What RabbitMQ's rabbit_ssl:peer_cert_subject makes of the same certificates.
@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (["countryName=GB", "commonName=ann"], "CN=ann,C=GB"),
        (["organizationName=Shop, Ltd"], "O=Shop\\, Ltd"),
        (["commonName= a#b+c "], "CN=\\ a#b\\+c\\ "),
        (["commonName=#x"], "CN=\\#x"),
        (["commonName=größe"], "CN=gr\\C3\\B6\\C3\\9Fe"),
        (["commonName=tilde~"], "CN=tilde\\7E"),
        (['organizationalUnitName=x<y>;"z"'], 'OU=x\\<y\\>\\;\\"z\\"'),
        (["organizationName=A", "organizationalUnitName=B&commonName=two"], "OU=B+CN=two,O=A"),
        (["emailAddress=a@b.c", "streetAddress=Road 1"], "2.5.4.9=Road 1,EMAILADDRESS=a@b.c"),
        (["domainComponent=com", "userId=7"], "UID=7,DC=com"),
        ([], ""),
    ],
)
def test_a_distinguished_name_is_written_as_rabbitmq_does(subject: list[str], name: str) -> None:
    found = certificate_name(
        certificate(*subject) if subject else {"subject": ()}, "distinguished_name"
    )
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (["countryName=GB", "commonName=ann"], "ann"),
        (["commonName=two", "commonName=three"], "two,three"),
        (["organizationName=A"], ""),
    ],
)
def test_the_common_name_alone(subject: list[str], name: str) -> None:
    found = certificate_name(certificate(*subject), "common_name")
    assert found is not None
    assert found.name == name


def test_no_certificate_names_nobody() -> None:
    assert certificate_name(None, "common_name") is None
    assert certificate_name({}, "common_name") is None
