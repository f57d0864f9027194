"""The port program with a defect: it divides by zero whenever a model is to be read."""

from __future__ import annotations

import nutkin.model
from nutkin_port.__main__ import main


def divide(_tree: object, *, limit: int) -> float:
    return limit / 0


if __name__ == "__main__":
    nutkin.model.read = divide
    main()
