"""Which loops of a compiled program XLA:CPU runs step by step, and which it has made into native functions.

XLA's small-while-loop pass moves a loop that it can compile as a whole into a computation of its own, called with the
attribute xla_cpu_small_call. A `while` that is reached from the entry without such a call is run as thunks, one for
each fusion and copy of its body.
"""

from __future__ import annotations

import re

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{$")
_CALLED = re.compile(r"\b(?:to_apply|calls|body|condition|true_computation|false_computation)=%?([\w.-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")


def stepwise_loops(compiled) -> list[str]:
    """The `while` instructions that run as thunks: empty if every loop is native. `compiled` is jax's `Compiled`."""
    computations, entry = _computations(compiled.as_text())
    waiting, seen, loops = [entry], set(), []
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for line in computations[name]:
            if 'xla_cpu_small_call="true"' in line or " fusion(" in line:
                continue
            if re.search(r"\bwhile\(", line):
                loops.append(line.strip())
            waiting += _CALLED.findall(line)
            for branches in _BRANCHES.findall(line):
                waiting += [branch.strip().lstrip("%") for branch in branches.split(",")]
    return loops


def native_loops(compiled) -> int:
    """How many calls of native loops the program's entry holds."""
    computations, entry = _computations(compiled.as_text())
    return sum('xla_cpu_small_call="true"' in line for line in computations[entry])


def steps(compiled) -> list[str]:
    """The instructions of the program's entry that are run."""
    computations, entry = _computations(compiled.as_text())
    free = re.compile(r"\b(?:parameter|constant|tuple|get-tuple-element|bitcast)\(")
    return [line.strip() for line in computations[entry] if " = " in line and not free.search(line.split(" = ")[1])]


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
    computations, entry, current = {}, "", []
    for line in text.splitlines():
        header = _COMPUTATION.match(line)
        if header:
            current = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        else:
            current.append(line)
    return computations, entry
