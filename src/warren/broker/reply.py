"""Direct reply-to: answers go straight to the channel that asked, through no queue."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from warren.amqp.hot import DELIVERY, deliver_prefix
from warren.amqp.methods import shortstr
from warren.broker.message import Message

if TYPE_CHECKING:
    from warren.broker.channel import Channel


log = logging.getLogger(__name__)

#: Octets of replies that wait for a client which does not read; the rest is dropped.
_MOST_UNREAD = 16 << 20


class ReplyConsumer:
    """A consumer of ``amq.rabbitmq.reply-to``: always without acknowledgement."""

    __slots__ = ("_tag", "channel", "name", "tag")

    def __init__(self, channel: Channel, tag: str, name: str) -> None:
        self.channel = channel
        self.tag = tag
        self.name = name
        self._tag = shortstr(tag)

    def publish(self, message: Message) -> bool:
        """Send a reply; it is held by nobody afterwards, and takes no delivery tag."""
        channel = self.channel
        connection = channel.connection
        session = connection.session
        if connection.budget < -_MOST_UNREAD:
            log.warning("%s: reads no replies, one is dropped", connection.name)
            return True
        content = message.content_for(channel.number, session.frame_max)
        connection.budget -= len(content)
        suffix = message.address.suffix
        session.out += (
            deliver_prefix(channel.number, self._tag, suffix),
            DELIVERY.pack(channel.last_tag + 1, 0),
            suffix,
            content,
        )
        connection.wants_write()
        return True
