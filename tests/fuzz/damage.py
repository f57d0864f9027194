"""Valid input, damaged at random: bytes, and trees of maps and lists."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

JUNK = [None, True, 0, 7, -1, 2**40, 2**63, 2**70, 1.5, float("nan"), "", "normal", b"x", bytes(32), [], [0], {}]
JUNK += [{"mu": 0}, {3: 4}, [[[]]], "x - at `$.nodes[99]", "0.mu", [1] * 70]
FIELDS = ["shape", "transform", "centered", "weight", "opts", "type", "extra", "x` - at `$.nodes[7].args[...]", 3]
BYTES = [0, 1, 0x7F, 0x80, 0x90, 0xA0, 0xC1, 0xC4, 0xC6, 0xC7, 0xD4, 0xD9, 0xDC, 0xDD, 0xDF, 0xFF]


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from places(tree[key])


def damage_tree(tree: Any, random: Random) -> None:
    """One change: something left out, added, or replaced by what does not belong there."""
    found = list(places(tree))
    if not found:
        return
    container, key = random.choice(found)
    match random.randrange(5):
        case 0 if isinstance(container, dict):
            del container[key]
        case 1 if isinstance(container, dict):
            container[random.choice(FIELDS)] = copy.deepcopy(random.choice(JUNK))
        case 2:  # something from elsewhere in the tree
            other, place = random.choice(found)
            container[key] = copy.deepcopy(other.get(place) if isinstance(other, dict) else other[place])
        case _:
            container[key] = copy.deepcopy(random.choice(JUNK))


def damage_bytes(data: bytes, random: Random) -> bytes:
    """Some changes: bytes replaced, flipped, left out, repeated, cut off, or a length made large."""
    result = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 3, 8])):
        place = random.randrange(len(result) + 1)
        match random.randrange(7):
            case 0:
                result[place : place + 1] = bytes([random.choice(BYTES)])
            case 1:
                result[place : place + 1] = bytes([random.randrange(256)])
            case 2 if place < len(result):
                result[place] ^= 1 << random.randrange(8)
            case 3:
                del result[place : place + random.choice([1, 2, 8])]
            case 4:
                result[place:place] = result[place : place + random.choice([1, 4, 50])]
            case 5:
                del result[place:]
            case _:
                result[place : place + 4] = random.choice([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00\x10\x00\x00"])
    return bytes(result)
