"""The console command `nutkin`: `nutkin inspect FILE [--json]` prints what a file of tensors or frames holds."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from nutkin.errors import NutkinError
from nutkin_port import inspect


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 1 when the file cannot be read, with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="nutkin", description="Tools for Nutkin's files.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "inspect",
        help="print what a file holds",
        description="Prints what Nx.serialize bytes, a tensor payload, or recorded frames hold.",
    )
    command.add_argument("file", type=Path)
    command.add_argument("--json", action="store_true", help="as JSON instead of text")
    options = parser.parse_args(arguments)
    try:
        contents = inspect.read(options.file.read_bytes())
    except (OSError, NutkinError) as error:
        print(f"nutkin: {options.file}: {error}", file=sys.stderr)
        return 1
    text = json.dumps(inspect.to_json(contents), ensure_ascii=False) if options.json else inspect.to_text(contents)
    if sys.stdout is None:
        print("nutkin: there is no standard output", file=sys.stderr)
        return 1
    sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know every character
    try:
        print(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is to be written at exit either
        if isinstance(error, BrokenPipeError):  # whoever reads has seen enough
            return 0
        print(f"nutkin: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
