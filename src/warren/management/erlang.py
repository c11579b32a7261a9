"""Fields that tell of Erlang's insides: there, so that clients find them, and empty of news."""

from __future__ import annotations

from typing import Any

NODE = "warren@localhost"


def process() -> dict[str, Any]:
    """What RabbitMQ says of a process; -1 is its own word for "there is none"."""
    return {
        "garbage_collection": {
            "fullsweep_after": -1,
            "max_heap_size": -1,
            "min_bin_vheap_size": -1,
            "min_heap_size": -1,
            "minor_gcs": -1,
        },
        "reductions": 0,
        "reductions_details": {"rate": 0.0},
    }


def backing_queue(length: int, given_out: int, came: int) -> dict[str, Any]:
    return {
        "avg_ack_egress_rate": 0.0,
        "avg_ack_ingress_rate": 0.0,
        "avg_egress_rate": 0.0,
        "avg_ingress_rate": 0.0,
        "delta": ["delta", "undefined", 0, 0, "undefined"],
        "len": length,
        "mode": "default",
        "next_deliver_seq_id": given_out,
        "next_seq_id": came,
        "q1": 0,
        "q2": 0,
        "q3": 0,
        "q4": length,
        "target_ram_count": "infinity",
        "version": 1,
    }
