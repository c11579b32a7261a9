"""TLS listeners to order, of our broker and of a RabbitMQ, and certificates for both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

import warren
from tests.support import brokers, rabbitmq
from tests.support.brokers import TestBroker
from tests.support.certificate_fixtures import ours, shown, theirs
from tests.support.certificates import Authority, Certificate
from tests.support.servers import free_ports

__all__ = ["ours", "shown", "theirs"]  # fixtures


@dataclass(frozen=True)
class Listener:
    """A port for AMQP over TLS, and the broker behind it."""

    broker: TestBroker
    port: int

    @contextmanager
    def user(self, name: str) -> Iterator[None]:
        """A user without a password who may do everything in the virtual host /."""
        self.broker.add_user(name, None, password_hash="")
        try:
            self.broker.set_permissions(name, "/")
            yield
        finally:
            self.broker.delete_user(name)


#: Opens a listener: ``listening(verify="required", login_from="common_name")``.
Listening = Callable[..., AbstractContextManager[Listener]]


@pytest.fixture(scope="module")
def ann(ours: Authority) -> Certificate:
    return ours.issue("ann", "/C=GB/O=Shop, Ltd/CN=ann")


@pytest.fixture(scope="module", params=("warren", "rabbitmq"))
def broker(request: pytest.FixtureRequest) -> str:
    """The name alone: what listens for TLS is started by the test."""
    return str(request.param)


@pytest.fixture
def listening(broker: str, ours: Authority, shown: Certificate) -> Listening:
    return partial({"warren": _of_warren, "rabbitmq": _of_rabbitmq}[broker], ours, shown)


@contextmanager
def _of_warren(
    ours: Authority,
    shown: Certificate,
    *,
    verify: str = "none",
    login_from: str = "distinguished_name",
) -> Iterator[Listener]:
    with warren.Broker.in_thread(
        port=0,
        management_port=0,
        tls_port=0,
        tls_certificate=shown.certificate,
        tls_key=shown.key,
        tls_ca=ours.ca,
        tls_verify=verify,
        tls_login_from=login_from,
    ) as broker:
        yield Listener(brokers.WarrenBroker(broker), broker.tls_port)


@contextmanager
def _of_rabbitmq(
    ours: Authority,
    shown: Certificate,
    *,
    verify: str = "none",
    login_from: str = "distinguished_name",
) -> Iterator[Listener]:
    # Always the run's own: one that is given has neither the plugin nor our files.
    node = rabbitmq.node()
    (port,) = free_ports(1)
    where = f'{{"127.0.0.1", {port}}}'
    options = (
        f'[{{cacertfile, "{ours.ca}"}}, {{certfile, "{shown.certificate}"}},'
        f' {{keyfile, "{shown.key}"}}, {{verify, verify_{"none" if verify == "none" else "peer"}}},'
        f" {{fail_if_no_peer_cert, {str(verify == 'required').lower()}}}]"
    )
    settings = {
        "ssl_options": options,
        "ssl_cert_login_from": login_from,
        "auth_mechanisms": "['PLAIN', 'AMQPLAIN', 'EXTERNAL']",
    }
    before = {name: _setting(node, name) for name in settings}
    _set(node, settings)
    secured = "rabbit_networking:ensure_ssl()"
    node.evaluate(f"rabbit_networking:start_ssl_listener({where}, {secured}, 1)")
    try:
        yield Listener(brokers.from_node(node), port)
    finally:
        node.evaluate(f"rabbit_networking:stop_tcp_listener({where})")
        _set(node, before)


def _setting(node: rabbitmq.Node, name: str) -> str:
    return node.evaluate(f"element(2, application:get_env(rabbit, {name}))")


def _set(node: rabbitmq.Node, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        node.evaluate(f"application:set_env(rabbit, {name}, {value})")
