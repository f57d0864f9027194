"""From a checked model to XLA: `bind` puts a model and its tensors together, `EXECUTABLES` keeps what was compiled.

Imports `nutkin.model`; imported by `nutkin.sampler`.
"""

from nutkin.compile.evaluation import Evaluation as Evaluation
from nutkin.compile.evaluation import bind_evaluation as bind_evaluation
from nutkin.compile.evaluation import shapes as shapes
from nutkin.compile.executables import EXECUTABLES as EXECUTABLES
from nutkin.compile.executables import Executables as Executables
from nutkin.compile.executables import compilations as compilations
from nutkin.compile.executables import is_out_of_memory as is_out_of_memory
from nutkin.compile.executables import return_free_memory as return_free_memory
from nutkin.compile.prediction import Prediction as Prediction
from nutkin.compile.prediction import bind_prediction as bind_prediction
from nutkin.compile.stored import surroundings as surroundings
from nutkin.compile.target import Target as Target
from nutkin.compile.target import bind as bind
