"""The other side of the codec's tests: Python's msgpack.

    msgpack_peer.py read FRAMES JSON                what each frame holds, and whether it packs to the same bytes
    msgpack_peer.py write SEED COUNT FRAMES JSON    makes terms, writes them both ways

A frame has a 4-byte big-endian length before it. JSON has {"$hex": ...} for bytes and {"$tensor": {type, shape, hex}}.
"""

import json
import math
import random
import struct
import sys

import msgpack

TENSOR = 1
EDGES = [edge for bits in (5, 7, 8, 15, 16, 31, 32, 63) for edge in (2**bits - 1, 2**bits, -(2**bits))]
INTEGERS = [i for i in [0, 1, -1, 2**64 - 1, *EDGES] if -(2**63) <= i < 2**64]
LENGTHS = [0, 1, 15, 16, 31, 32, 33, 255, 256]
LONG = [65535, 65536]


def to_json(term):
    match term:
        case bytes():
            return {"$hex": term.hex()}
        case msgpack.ExtType(code=code, data=data):
            assert code == TENSOR
            return {"$tensor": tensor(data)}
        case list():
            return [to_json(value) for value in term]
        case dict():
            return {key: to_json(value) for key, value in term.items()}
        case _:
            return term


def tensor(payload):
    length = payload[0]
    name = payload[1 : 1 + length].decode("ascii")
    rank = payload[1 + length]
    end = 2 + length + 8 * rank
    return {
        "type": name,
        "shape": list(struct.unpack(f"<{rank}Q", payload[2 + length : end])),
        "hex": payload[end:].hex(),
    }


def make(rng, depth):
    kinds = [make_scalar, make_string, make_bytes, make_tensor]
    if depth < 4:
        kinds += [make_list, make_map]
    return rng.choice(kinds)(rng, depth)


def make_scalar(rng, _depth):
    floats = [0.0, -0.0, 0.1, -1e-300, 1.7976931348623157e308, 5e-324, rng.gauss(0, 1e5)]
    return rng.choice([None, True, False, rng.choice(INTEGERS), rng.choice(floats)])


def make_string(rng, _depth):
    alphabet = 'ab"\\/\n\t\x00\x7fäЖ語😀'
    return "".join(rng.choice(alphabet) for _ in range(rng.choice(LENGTHS)))


def make_bytes(rng, _depth):
    return rng.randbytes(rng.choice(LENGTHS))


def make_tensor(rng, _depth):
    name, size = rng.choice([("f64", 8), ("f32", 4), ("u8", 1), ("s16", 2), ("bf16", 2), ("c128", 16)])
    shape = [rng.randrange(1, 4) for _ in range(rng.randrange(0, 4))]
    header = bytes([len(name)]) + name.encode() + bytes([len(shape)]) + struct.pack(f"<{len(shape)}Q", *shape)
    return msgpack.ExtType(TENSOR, header + rng.randbytes(size * math.prod(shape)))


def make_list(rng, depth):
    return [make(rng, depth + 1) for _ in range(rng.choice([0, 1, 3, 15, 16, 17] if depth < 2 else [0, 1, 2]))]


def make_map(rng, depth):
    size = rng.choice([0, 1, 3, 15, 16, 17] if depth < 2 else [0, 1, 2])
    return {f"{make_string(rng, depth)}{i}": make(rng, depth + 1) for i in range(size)}


def make_long(rng):
    n = rng.choice(LONG)
    return rng.choice([lambda: "x" * n, lambda: bytes(n), lambda: [1] * n, lambda: {f"{i}": i for i in range(n)}])()


def read(frames, out):
    with open(frames, "rb") as stream, open(out, "w") as lines:
        while header := stream.read(4):
            frame = stream.read(int.from_bytes(header, "big"))
            term = msgpack.unpackb(frame, max_ext_len=2**30)
            lines.write(json.dumps([to_json(term), msgpack.packb(term) == frame]) + "\n")


def write(seed, count, frames, out):
    rng = random.Random(seed)
    with open(frames, "wb") as stream, open(out, "w") as lines:
        for i in range(count):
            term = make_long(rng) if i % 50 == 0 else make(rng, 0)
            frame = msgpack.packb(term)
            stream.write(len(frame).to_bytes(4, "big") + frame)
            lines.write(json.dumps(to_json(term)) + "\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["read", frames, out]:
            read(frames, out)
        case ["write", seed, count, frames, out]:
            write(int(seed), int(count), frames, out)
        case _:
            sys.exit(__doc__)
