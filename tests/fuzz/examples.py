"""Valid input of every decoder, to be damaged: what real clients, the program and Nx have written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nutkin.model.types import DTYPES
from nutkin_port import nx_serialize, tensors, terms

ROOT = Path(__file__).parents[2]
FRAMES = [path.read_bytes() for path in sorted((ROOT / "bridge" / "golden").glob("*.frame"))]
FILES = [path.read_bytes() for path in sorted((ROOT / "tests" / "nx_golden").glob("*.nx"))]
PAYLOADS = [tensors.encode(np.array([[0, 1, 1], [1, 0, 1]], np.uint8).astype(dtype)) for dtype in DTYPES.values()]
TERMS = [
    terms.write([terms.Atom("a"), (1, -(2**70), 1.5), {b"k": [b"v"]}, [*range(300)]]),
    *(file[nx_serialize.PREFIX_BYTES :] for file in FILES if file[:2] == nx_serialize.MAGIC),
]
