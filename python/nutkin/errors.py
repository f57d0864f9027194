"""The exceptions of Nutkin.

    NutkinError
    ├── InvalidModel     the model is wrong: operation, distribution, reference, shape
    ├── InvalidData      a tensor is missing, unreadable, of the wrong shape, or holds impossible values
    ├── InvalidOption    an option is unknown or out of range
    ├── InvalidCheckpoint  a checkpoint is none, or of another run or another version
    ├── CompileFailed    XLA refused the program
    ├── InitFailed       no starting point with a finite log density and gradient
    ├── LimitExceeded    a documented limit was exceeded
    ├── ProtocolError    a frame or message that breaks the wire contract
    └── Cancelled        the request was cancelled

Each says what was expected, what was found and what to do, and where: the fields travel as they are to the client.
"""

from __future__ import annotations

MAX_TEXT = 2000


def shortened(value: str | int) -> str | int:
    """A text of at most MAX_TEXT characters; anything else as it is."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]}… ({len(value)} characters)"
    return value


class NutkinError(Exception):
    """Base of all errors that a caller is meant to see. `code` names the class on the wire."""

    code = "internal"

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        index: int | None = None,
        path: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.index = index
        self.path = path
        self.expected = expected
        self.found = found
        self.hint = hint

    def body(self) -> dict[str, str | int]:
        """The fields that are set, as plain data. What was found may come from outside: texts are cut to a length."""
        fields = ("message", "node", "index", "path", "expected", "found", "hint")
        values = {name: getattr(self, name) for name in fields}
        return {"code": self.code, **{name: shortened(v) for name, v in values.items() if v is not None}}

    def __str__(self) -> str:
        parts = [self.message]
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        if self.hint is not None:
            parts.append(self.hint)
        return "; ".join(parts)


class InvalidModel(NutkinError):
    code = "invalid_model"


class InvalidData(NutkinError):
    code = "invalid_data"


class InvalidOption(NutkinError):
    code = "invalid_option"


class InvalidCheckpoint(NutkinError):
    code = "invalid_checkpoint"


class CompileFailed(NutkinError):
    code = "compile_failed"


class InitFailed(NutkinError):
    code = "init_failed"


class LimitExceeded(NutkinError):
    code = "limit"


class ProtocolError(NutkinError):
    code = "protocol"


class Cancelled(NutkinError):
    code = "cancelled"
