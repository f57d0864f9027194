"""What to do about a node that is NaN or infinite, by its operation, and about one whose gradient is."""

from __future__ import annotations

from nutkin.model.diagnosis.scope import GRADIENT, TERM, Culprit, has_nan
from nutkin.model.ir import Call, Data, Node, Ode, RandomVariable

_POSITIVE = (
    "the logarithm needs a positive number: give its operand a positive distribution, or make it the exp of a free one"
)
_ROOT = "the root needs a number of at least 0: see that its operand cannot become negative"
_OVERFLOW = (
    "exp overflows above 709 (88 in f32): scale its operand, with standardised data or narrower priors; where a "
    "logarithm follows, use a function of the logarithm, such as logsumexp, log1p or softplus"
)
_ZERO = "see that what it is divided by cannot be 0"
_POWER = "a negative number has no fractional power, and 0 no negative one: see that the base stays positive"
_UNIT = "see that its operand stays inside (-1, 1)"
_MATRIX = "the matrix is singular or not positive definite: add a small number, such as 1.0e-6, to its diagonal"

_BY_OPERATION = {
    **dict.fromkeys(("log", "log1p", "lgamma", "digamma", "lbeta"), _POSITIVE),
    **dict.fromkeys(("sqrt", "rsqrt"), _ROOT),
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh"), _OVERFLOW),
    **dict.fromkeys(("divide", "remainder"), _ZERO),
    "pow": _POWER,
    **dict.fromkeys(("asin", "acos", "atanh", "erf_inv"), _UNIT),
    **dict.fromkeys(("cholesky", "solve", "invert", "triangular_solve", "log_det", "determinant", "eigh"), _MATRIX),
}

_EDGE = (
    "its derivative there is not finite. Where a select did not take this side, its derivative still counts, as 0 "
    "times infinity: give the operand a harmless value there, as in log(select(x > 0, x, 1.0))"
)
_SOLVER = "the solver gave up: raise max_steps, loosen rtol and atol, or choose kvaerno5 for stiff equations"
_TRANSFORM = "its unconstrained coordinate is too far out: start closer to 0, or give starting values with init"
_DATA = "the data hold it: leave such rows out, or mask them"
_IMPOSSIBLE = "no parameters of this size make the observation possible: check data, priors and the scale of predictors"


def hint(culprit: Culprit, node: Node) -> str | None:
    if culprit.hint is not None:
        return culprit.hint
    if culprit.what == GRADIENT:
        return _EDGE
    if culprit.what == TERM:
        return None if has_nan(culprit.wrong) or culprit.expected else _IMPOSSIBLE
    match node:
        case Call():
            return _BY_OPERATION.get(node.op)
        case RandomVariable():
            return _TRANSFORM
        case Data():
            return _DATA
        case Ode():
            return _SOLVER
    return None
