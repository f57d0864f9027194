"""Nutkin's engine: models as plain data, compiled with XLA, sampled with NUTS. It knows nothing of the BEAM.

    tree -> nutkin.model.read -> nutkin.compile.bind -> nutkin.sampler.compile_sampler -> nutkin.sampler.Run

`nutkin.sample` makes the whole trip in one call; `nutkin.predict` goes on from its draws.
"""

import gc

# What is imported stays: looking through it for garbage takes a tenth of the time.
_collecting = gc.isenabled()
gc.disable()
try:
    from nutkin import settings as settings  # first: it must run before jax starts

    from nutkin.sampler.predictions import predict as predict  # isort: skip
    from nutkin.sampler.sample import Draws as Draws  # isort: skip
    from nutkin.sampler.sample import sample as sample  # isort: skip
    from nutkin.versions import __version__ as __version__  # isort: skip
    from nutkin.versions import devices as devices  # isort: skip
    from nutkin.versions import versions as versions  # isort: skip
finally:
    if _collecting:
        gc.enable()
