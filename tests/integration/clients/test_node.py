"""A client in another language: node's amqplib, where it is at hand (NODE_PATH may say where)."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.integration.clients.programs import DEADLINE_S
from tests.support.brokers import TestBroker

PROGRAM = """
const amqp = require('amqplib');
const [url, queue, exchange] = process.argv.slice(1);
const told = {};

async function main() {
  const connection = await amqp.connect(url);
  const channel = await connection.createConfirmChannel();
  await channel.assertQueue(queue, {durable: true, maxPriority: 5});
  await channel.assertExchange(exchange, 'topic', {durable: false});
  await channel.bindQueue(queue, exchange, 'orders.#');

  const returned = new Promise(resolve => channel.once('return', resolve));
  channel.publish(exchange, 'nowhere', Buffer.from('lost'), {mandatory: true});
  const lost = await returned;
  told.returned = [lost.fields.replyCode, lost.fields.replyText, lost.content.toString()];

  const deep = {list: [1, 'b']};
  const headers = {text: 'ä', number: 7, big: 2 ** 40, half: 0.5, yes: true, deep};
  channel.publish(exchange, 'orders.new', Buffer.from('first'), {headers, persistent: true});
  channel.publish(exchange, 'orders.urgent', Buffer.alloc(300000, 'x'), {priority: 5});
  await channel.waitForConfirms();
  told.waiting = (await channel.checkQueue(queue)).messageCount;

  const got = [];
  await channel.prefetch(1);
  await new Promise(resolve => channel.consume(queue, message => {
    got.push([message.fields.routingKey, message.content.length, message.fields.redelivered]);
    if (message.fields.routingKey === 'orders.new') told.headers = message.properties.headers;
    if (got.length === 1) channel.nack(message); else channel.ack(message);
    if (got.length === 3) resolve();
  }));
  told.got = got;

  await channel.consume('amq.rabbitmq.reply-to', message => {
    told.reply = [message.properties.correlationId, message.content.toString()];
  }, {noAck: true});
  const server = await connection.createChannel();
  const requests = (await server.assertQueue('', {exclusive: true})).queue;
  const request = {replyTo: 'amq.rabbitmq.reply-to', correlationId: 'c-1'};
  channel.sendToQueue(requests, Buffer.from('question'), request);
  await channel.waitForConfirms();
  const question = await server.get(requests, {noAck: true});
  server.sendToQueue(question.properties.replyTo, Buffer.from('answer'), {correlationId: 'c-1'});
  while (!told.reply) await new Promise(resolve => setTimeout(resolve, 10));

  server.on('error', () => {});
  told.refused = await server.assertQueue(queue, {durable: false}).catch(error => error.code);
  await connection.close();
  console.log(JSON.stringify(told));
}

main().catch(error => { console.error(error); process.exit(1); });
"""


@pytest.fixture(scope="module")
def node() -> str:
    path = shutil.which("node")
    if path is None:
        pytest.skip("node is not installed")
    look = [path, "-e", "require.resolve('amqplib')"]
    if subprocess.run(look, stderr=subprocess.DEVNULL, timeout=DEADLINE_S).returncode:
        pytest.skip("node's amqplib is not installed")
    return path


def test_a_node_program(broker: TestBroker, name: Callable[[str], str], node: str) -> None:
    done = subprocess.run(
        [node, "-e", PROGRAM, broker.url, name("orders"), name("shop")],
        stdout=subprocess.PIPE,
        timeout=DEADLINE_S,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "returned": [312, "NO_ROUTE", "lost"],
        "waiting": 2,
        "headers": {
            "text": "ä",
            "number": 7,
            "big": 2**40,
            "half": 0.5,
            "yes": True,
            "deep": {"list": [1, "b"]},
        },
        "got": [
            ["orders.urgent", 300000, False],
            ["orders.urgent", 300000, True],
            ["orders.new", 5, False],
        ],
        "reply": ["c-1", "answer"],
        "refused": 406,
    }
