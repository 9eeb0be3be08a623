"""The plan as JSON, for programs that move the bytes themselves (docs/device_sets.md has the format)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shardpass.redistribute.between.sent import Message
from shardpass.redistribute.between.sides import Side
from shardpass.redistribute.between.waves import MovedArray, Wave

VERSION = 1


def written(facts: Mapping[str, Any], arrays: Sequence[MovedArray], waves: Sequence[Wave]) -> str:
    """Write ``facts`` about a plan and its schedule as JSON."""
    free: dict[int, int] = {}
    done = 0
    for wave in waves:
        done += len(wave.rounds)
        free.update(dict.fromkeys(wave.arrays, done))
    data = {
        "version": VERSION,
        **facts,
        "arrays": [_array(array, free[number]) for number, array in enumerate(arrays)],
        "rounds": [[_message(message) for message in messages] for wave in waves for messages in wave.rounds],
    }
    return json.dumps(data)


def _array(array: MovedArray, free: int) -> dict[str, Any]:
    return {
        "name": array.name,
        "shape": list(array.shape),
        "element_type": array.element_type.mlir,
        "source": _side(array.source),
        "target": _side(array.target),
        "source_free_after": free,
    }


def _side(side: Side) -> dict[str, Any]:
    boxes = [{"device": device, "start": box[0], "stop": box[1]} for device, box in side.boxes.items()]
    return {"sharding": str(side.sharding), "devices": list(side.devices), "tiles": boxes}


def _message(message: Message) -> dict[str, Any]:
    return {
        "sender": message.sender,
        "receiver": message.receiver,
        "pieces": [
            {"arrays": list(cell.arrays), "start": list(cell.box[0]), "stop": list(cell.box[1])}
            for cell in message.cells
        ],
    }
