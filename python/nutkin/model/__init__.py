"""Models: what they are on the wire, what they mean, and their log density as a function that JAX can trace.

    model = read(tree)                                # form: fields, references, names
    program = check(model, data_specs, blob_specs)    # meaning: shapes, types, distributions
    padding = pad(model, data_specs, blob_specs, …)   # where data grow: a model for more rows than there are
    program = rewrite(program)                        # the same log density, with a cheaper gradient
    density = Density(program)                        # numbers: log density, outputs, coordinates
    diagnosis = diagnose(density, position, inputs)   # why they are not finite at a point

It imports nothing of the rest of the engine but its errors.
"""

from nutkin.model.checking import check as check
from nutkin.model.density import Density as Density
from nutkin.model.density import OutputValue as OutputValue
from nutkin.model.density import Parameter as Parameter
from nutkin.model.diagnosis import Cause as Cause
from nutkin.model.diagnosis import Diagnosis as Diagnosis
from nutkin.model.diagnosis import Reading as Reading
from nutkin.model.diagnosis import diagnose as diagnose
from nutkin.model.drawn import check_drawn as check_drawn
from nutkin.model.growth import grows as grows
from nutkin.model.growth import resized as resized
from nutkin.model.growth import rooms as rooms
from nutkin.model.ir import Model as Model
from nutkin.model.padding import Padding as Padding
from nutkin.model.padding import pad as pad
from nutkin.model.predictive import Predictive as Predictive
from nutkin.model.predictive_model import predictive_model as predictive_model
from nutkin.model.program import Program as Program
from nutkin.model.program import Rewrite as Rewrite
from nutkin.model.reading import read as read
from nutkin.model.rewrites import REWRITES as REWRITES
from nutkin.model.rewrites import rewrite as rewrite
from nutkin.model.steps import Input as Input
from nutkin.model.types import Spec as Spec
