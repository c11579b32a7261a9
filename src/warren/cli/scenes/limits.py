"""Scene 4, second part: messages that are too old, and messages that are too many."""

from __future__ import annotations

from collections import Counter

from warren.amqp.properties import Properties
from warren.cli.scenes.ledger import Account
from warren.cli.scenes.link import Delivery, Link
from warren.cli.scenes.stage import Stage, mark

_OFFERS, _LATEST = "offers", "latest"
_LATE, _DROPPED = "offers.late", "latest.dropped"
_COUNT, _IN_TIME, _ROOM = 10, 4, 5


def play(stage: Stage, link: Link, account: Account) -> None:
    """Offers with little time to live, and a queue that keeps the newest five."""
    ttl_ms = 100 if stage.fast else 400
    for queue in (_LATE, _DROPPED):
        link.queue(queue)
        link.consume(queue, no_ack=True)
    link.queue(_OFFERS, x_dead_letter_exchange="", x_dead_letter_routing_key=_LATE)
    link.queue(
        _LATEST,
        x_max_length=_ROOM,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=_DROPPED,
    )
    _publish(link, account, ttl_ms)
    link.consume(_OFFERS, prefetch=_IN_TIME)
    link.consume(_LATEST, no_ack=True)
    reasons = _receive(link, account)
    for queue in (_OFFERS, _LATEST, _LATE, _DROPPED):
        account.left_over += link.delete(queue)
    stage.say(
        "[bold]TTL and limits[/]  [dim]what is too old or too much leaves its queue[/]",
        f"  {_COUNT} offers that live {ttl_ms} ms, a reader for {_IN_TIME}  ─▶  "
        f"{reasons['expired']} dead-lettered: [yellow]expired[/]",
        f"  {_COUNT} messages for a queue with room for {_ROOM}  ─▶  "
        f"{reasons['maxlen']} dead-lettered: [yellow]maxlen[/]",
        f"  {mark(account.adds_up)} {account.published} published = {account.fates['consumed']} "
        f"read + {account.fates['expired']} expired + {account.fates['dead-lettered']} pushed out",
        "",
    )
    stage.pause(0.6)


def _publish(link: Link, account: Account, ttl_ms: int) -> None:
    link.confirms()
    for number in range(_COUNT):
        account.sent((_OFFERS if number < _IN_TIME else _LATE, number))
        link.publish("", _OFFERS, b"%d" % number, Properties(expiration=str(ttl_ms)))
        account.sent((_LATEST if number >= _COUNT - _ROOM else _DROPPED, number))
        link.publish("", _LATEST, b"%d" % number)
    link.wait_confirmed()


def _receive(link: Link, account: Account) -> Counter[str]:
    """Read all that comes; why the broker took messages out of their queues."""
    reasons: Counter[str] = Counter()
    held: list[Delivery] = []
    while account.outstanding > 0 and (delivery := link.next()) is not None:
        place, fate = delivery.consumer, "consumed"
        if place in (_LATE, _DROPPED):
            reason = delivery.headers["x-death"][0]["reason"]
            reasons[reason] += 1
            fate = "expired" if reason == "expired" else "dead-lettered"
        elif place == _OFFERS:
            held.append(delivery)  # the reader is busy: its prefetch is full until it acks
        account.came((place, int(delivery.body)), fate)
    for delivery in held:
        link.ack(delivery)
    return reasons
