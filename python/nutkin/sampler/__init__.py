"""NUTS on XLA: `compile_sampler` makes the programs, a `Run` holds the chains and where they meet,
`advance` makes draws.

Imports `nutkin.compile` and `nutkin.model`, and nothing imports it but the port.
"""

from nutkin.sampler.centering import centered as centered
from nutkin.sampler.chain import Chain as Chain
from nutkin.sampler.chain import Chunk as Chunk
from nutkin.sampler.chain import Progress as Progress
from nutkin.sampler.chain import Summary as Summary
from nutkin.sampler.chain import advance as advance
from nutkin.sampler.compiled import Sampler as Sampler
from nutkin.sampler.compiled import compile_sampler as compile_sampler
from nutkin.sampler.compiled import has_programs as has_programs
from nutkin.sampler.kernel import STATISTICS as STATISTICS
from nutkin.sampler.options import Init as Init
from nutkin.sampler.options import Options as Options
from nutkin.sampler.pool import Pool as Pool
from nutkin.sampler.predictions import PredictedChain as PredictedChain
from nutkin.sampler.predictions import Predictions as Predictions
from nutkin.sampler.run import Pilot as Pilot
from nutkin.sampler.run import Run as Run
from nutkin.sampler.run import cores as cores
from nutkin.sampler.warmup import SAMPLE as SAMPLE
from nutkin.sampler.warmup import WARMUP as WARMUP
