"""Messages as any publisher may send them, for tests."""

from __future__ import annotations

from decimal import Decimal
from struct import Struct

from hypothesis import strategies as st

from warren.amqp.properties import FIELDS, join_properties
from warren.amqp.tables import Table, Timestamp, encode_table, text
from warren.client.blocking_reader import Deliveries

LONG = Struct(">I")
#: A header of as many arrays in each other as a frame of 128 KiB has room for.
DEEPEST = 26_000


def nested(depth: int) -> bytes:
    """Headers with one that has arrays in arrays."""
    arrays = b"".join(b"A" + LONG.pack(5 * left) for left in range(depth, -1, -1))
    entries = b"\x01h" + arrays
    return LONG.pack(len(entries)) + entries


OCTETS = st.binary(max_size=255) | st.integers(1, 255).map(lambda size: b"\xe9" * size)
NAMES = OCTETS.map(text)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.builds(lambda digits, scale: Decimal(digits).scaleb(-scale), *[st.integers(0, 255)] * 2)
    | st.integers(0, 2**64 - 1).map(Timestamp)
    | st.binary(max_size=300)
    | NAMES
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
HEADERS = st.dictionaries(NAMES, VALUES, max_size=5).map(lambda each: encode_table(Table(each)))
BY_DOMAIN = {
    "shortstr": OCTETS.map(lambda octets: bytes((len(octets),)) + octets),
    "octet": st.binary(min_size=1, max_size=1),
    "timestamp": st.binary(min_size=8, max_size=8),
    "table": HEADERS | st.integers(0, 1_200).map(nested),
}
PROPERTIES = st.fixed_dictionaries(
    {}, optional={name: BY_DOMAIN[domain] for name, _, domain in FIELDS}
).map(join_properties)
ROUTES = st.tuples(*[BY_DOMAIN["shortstr"]] * 2).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A property list in which octets are others, or which ends too early."""
    octets = bytearray(draw(PROPERTIES))
    for at in draw(st.lists(st.integers(0, len(octets) - 1), max_size=4)):
        octets[at] = draw(st.integers(0, 255))
    return bytes(octets[: draw(st.integers(2, len(octets)))])


def taken(messages: list[tuple[bytes, bytes, bytes]]) -> Deliveries:
    took = Deliveries()
    for route, properties, body in messages:
        took.routes.append(route)
        took.properties.append(properties)
        took.bodies.append(body)
    took.redelivered = list(range(0, len(messages), 2))
    return took


MESSAGES = st.tuples(ROUTES, PROPERTIES | damaged(), st.binary(max_size=20))
