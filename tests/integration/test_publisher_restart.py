"""The blocking publisher and a broker that is gone for a while."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.contract.test_bulk_publishing import messages
from tests.support.eventually import eventually
from tests.support.wire import Connection
from warren import Broker
from warren.client.blocking_publisher import BlockingPublisher, PublishRules
from warren.client.endpoint import Endpoint


def test_a_broker_that_is_started_again_gets_every_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = [b"%d" % number for number in range(200)]
    encoded = messages(bodies, "kept")

    with Broker.in_thread(data_dir=str(tmp_path)) as broker:
        port = broker.port
        connection = Connection.open(broker.url)
        connection.channel().declare("kept", durable=True)
        connection.close()
        # Tries are for what a broker refuses; one that is gone has time.
        bulk = BlockingPublisher([Endpoint.from_uri(broker.url)], PublishRules(retries=0))
        bulk.publish(encoded[:100])
        bulk.finish()

    def publish_the_rest() -> None:
        with bulk:
            bulk.publish(encoded[100:])
            bulk.finish()

    sender = threading.Thread(target=publish_the_rest, daemon=True)
    sender.start()
    eventually(lambda: caplog.text.count("trying again") >= 3, 20)
    assert bulk.unconfirmed == 100

    with Broker.in_thread(port=port, data_dir=str(tmp_path)) as broker:
        sender.join(20)
        assert (bulk.unconfirmed, bulk.counts.confirmed) == (0, 200)
        connection = Connection.open(broker.url)
        assert connection.channel().count("kept") == 100  # the first were not persistent
        connection.close()
