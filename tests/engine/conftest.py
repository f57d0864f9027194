import pathlib
import sys

# `trees` is shared by the engine's tests.
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import nutkin  # noqa: E402, F401  (x64 before anything else touches jax)
