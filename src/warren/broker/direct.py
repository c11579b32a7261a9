"""A client without a socket: what the management API does, it does on a channel like others.

So its user is asked for the same permissions and its messages are counted the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warren.amqp import methods as m
from warren.amqp.content import body_of, encode_content, encode_header, header_size, properties_of
from warren.amqp.frames import FRAME_MAX_DEFAULT
from warren.amqp.properties import join_properties
from warren.broker.channel import Channel
from warren.broker.connection import BrokerConnection
from warren.broker.plain import properties_from_json, properties_to_json, table_from_json
from warren.errors import NotAllowed, PreconditionFailed

if TYPE_CHECKING:
    from types import TracebackType

    from warren.broker.core import BrokerCore
    from warren.broker.users import User

_CHANNEL = 1


class _NoShell:
    """Stands where a socket's shell would."""

    def write(self) -> None: ...

    def opened(self) -> None: ...

    def reading_changed(self) -> None: ...

    def abort(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Got:
    """A message taken from a queue."""

    delivery_tag: int
    redelivered: bool
    exchange: str
    routing_key: str
    message_count: int
    properties: dict[str, Any] | list[Any]
    body: bytes


class DirectChannel:
    """One channel, for as long as the ``with`` block lasts; refusals are raised."""

    def __init__(self, core: BrokerCore, user: User, vhost: str) -> None:
        if vhost not in core.vhosts:
            raise NotAllowed(f"vhost {vhost} not found")
        self._core = core
        self._connection = connection = BrokerConnection(core, ("direct", 0), ("direct", 0))
        connection.shell = _NoShell()
        connection.user, connection.user_name = user, user.name
        connection.vhost = core.vhosts[vhost]
        connection.access = core.admin.access(user.name, vhost)
        self._channel = Channel(connection, _CHANNEL)

    def __enter__(self) -> DirectChannel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()
        self._connection.session.out.clear()
        self._core.outgoing.pop(self._connection, None)

    def _call(self, method: m.Method) -> None:
        self._channel.method(method)

    # -- exchanges, queues, bindings -------------------------------------------------------------
    def declare_queue(
        self, name: str, *, durable: bool, auto_delete: bool, arguments: dict[str, Any]
    ) -> None:
        self._call(
            m.QueueDeclare(
                queue=name,
                durable=durable,
                auto_delete=auto_delete,
                arguments=table_from_json(arguments),
            )
        )

    def delete_queue(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> None:
        self._call(m.QueueDelete(queue=name, if_unused=if_unused, if_empty=if_empty))

    def purge(self, name: str) -> None:
        self._call(m.QueuePurge(queue=name))

    def declare_exchange(
        self,
        name: str,
        kind: str,
        *,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        arguments: dict[str, Any],
    ) -> None:
        self._call(
            m.ExchangeDeclare(
                exchange=name,
                type=kind,
                durable=durable,
                auto_delete=auto_delete,
                internal=internal,
                arguments=table_from_json(arguments),
            )
        )

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        self._call(m.ExchangeDelete(exchange=name, if_unused=if_unused))

    def bind(
        self, source: str, kind: str, destination: str, key: str, arguments: dict[str, Any]
    ) -> None:
        table = table_from_json(arguments)
        if kind == "queue":
            self._call(
                m.QueueBind(queue=destination, exchange=source, routing_key=key, arguments=table)
            )
        else:
            self._call(
                m.ExchangeBind(
                    destination=destination, source=source, routing_key=key, arguments=table
                )
            )

    def unbind(self, source: str, kind: str, destination: str, key: str, arguments: Any) -> None:
        """``arguments`` as the binding has them."""
        if kind == "queue":
            self._call(
                m.QueueUnbind(
                    queue=destination, exchange=source, routing_key=key, arguments=arguments
                )
            )
        else:
            self._call(
                m.ExchangeUnbind(
                    destination=destination, source=source, routing_key=key, arguments=arguments
                )
            )

    # -- messages --------------------------------------------------------------------------------
    def publish(
        self, exchange: str, routing_key: str, properties: dict[str, Any], body: bytes
    ) -> str:
        """``routed``, ``unrouted``, or ``refused`` by a queue."""
        if len(body) > self._core.max_message_bytes:
            raise PreconditionFailed(
                f"message size {len(body)} is larger than configured max size "
                f"{self._core.max_message_bytes}"
            )
        raw = join_properties(properties_from_json(properties))
        content = encode_content(_CHANNEL, encode_header(len(body), raw), body, FRAME_MAX_DEFAULT)
        method = m.BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=True)
        publisher = self._channel.publisher
        publisher.confirming = True
        flags = int.from_bytes(raw[:2], "big")
        publisher.publish(method.encode()[4:], content, header_size(content), len(body), flags)
        if publisher.refused:
            return "refused"
        publisher.send_confirms()
        return "unrouted" if publisher.returned else "routed"

    def get(self, queue: str, *, no_ack: bool) -> Got | None:
        out = self._connection.session.out
        out.clear()
        self._call(m.BasicGet(queue=queue, no_ack=no_ack))
        answer = m.decode_method(out[0][7:-1])
        if not isinstance(answer, m.BasicGetOk):
            return None
        content = out[1]
        return Got(
            answer.delivery_tag,
            answer.redelivered,
            answer.exchange,
            answer.routing_key,
            answer.message_count,
            properties_to_json(properties_of(content)),
            body_of(content),
        )

    def reject(self, delivery_tag: int, *, requeue: bool) -> None:
        self._call(m.BasicReject(delivery_tag=delivery_tag, requeue=requeue))
