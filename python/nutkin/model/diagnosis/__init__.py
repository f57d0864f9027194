"""Why a model is not finite at a point: the first node that is NaN or infinite, with what went into it.

diagnosis = diagnose(density, position, inputs)
print(diagnosis)
"""

from nutkin.model.diagnosis.diagnose import Diagnosis as Diagnosis
from nutkin.model.diagnosis.diagnose import diagnose as diagnose
from nutkin.model.diagnosis.report import Cause as Cause
from nutkin.model.diagnosis.report import Reading as Reading
