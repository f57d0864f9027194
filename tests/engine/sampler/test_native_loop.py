"""Whole transitions run inside one native function: XLA:CPU compiles the loop of a chain as a whole where no operation
of the gradient forbids it. A change of the engine or of XLA that loses this makes small models several times slower."""

from functools import cache

import jax
import numpy as np
import pytest

from engine.builder import Builder
from engine.model.native.hoisting import steps, stepwise_loops
from engine.schools import DATA, eight_schools
from nutkin.compile import bind
from nutkin.model import read
from nutkin.sampler.kernel import build_advance
from nutkin.sampler.output_blocks import OutputBlocks
from nutkin.sampler.state import packed_size

ROWS = 200


def regression(likelihood: str) -> tuple[Builder, dict[str, np.ndarray]]:
    """Coefficients, a group effect and a walk: a product with a matrix, a gather, a cumulative sum."""
    rng = np.random.default_rng(0)
    tree = Builder()
    X, group, y = tree.data("X"), tree.data("group"), tree.data("y")
    beta = tree.rv("beta", "normal", {"mu": 0, "sigma": 1}, shape=[3])
    tau = tree.rv("tau", "half_normal", {"sigma": 1})
    effect = tree.rv("effect", "normal", {"mu": 0, "sigma": tau}, shape=[5], centered=False)
    steps = tree.rv("steps", "normal", {"mu": 0, "sigma": 0.1}, shape=[ROWS])
    parts = tree.call("add", tree.call("dot", X, beta), tree.call("take", effect, group))
    location = tree.call("add", parts, tree.call("cumulative_sum", steps))
    match likelihood:
        case "student_t":
            tree.observe("obs", "student_t", {"nu": 4, "mu": location, "sigma": 1}, y)
        case "poisson_log":
            tree.observe("obs", "poisson_log", {"eta": location}, y)
    data = {"X": rng.normal(size=(ROWS, 3)), "group": rng.integers(5, size=ROWS), "y": rng.poisson(2, size=ROWS)}
    return tree, data


def generalized_linear(family: str, argument: str) -> tuple[Builder, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    tree = Builder()
    X, y = tree.data("X"), tree.data("y")
    beta = tree.rv("beta", "normal", {"mu": 0, "sigma": 1}, shape=[3])
    extra = {"sigma": tree.rv("sigma", "half_normal", {"sigma": 1})} if family == "normal" else {}
    tree.observe("obs", family, {argument: tree.call("dot", X, beta), **extra}, y)
    return tree, {"X": rng.normal(size=(ROWS, 3)), "y": rng.integers(2, size=ROWS)}


def gaussian_process() -> tuple[Builder, dict[str, np.ndarray]]:
    """The Cholesky factor of a matrix of parameters is a call into LAPACK."""
    tree = Builder()
    scale = tree.rv("scale", "half_normal", {"sigma": 1})
    covariance = tree.call("multiply", scale, tree.data("K"))
    tree.observe("obs", "mv_normal", {"mu": tree.data("zero"), "cov": covariance}, tree.data("y"))
    return tree, {"K": np.eye(4), "zero": np.zeros(4), "y": np.ones(4)}


def compiled(tree: Builder, data: dict[str, np.ndarray], **options) -> jax.stages.Compiled:
    target = bind(read(tree.tree()), {name: np.asarray(value) for name, value in data.items()}, tree.tensors, **options)
    d = target.dimension
    blocks = OutputBlocks((*target.parameters, *target.deterministic))
    advance = build_advance(target.log_density, target.outputs, blocks, d, np.dtype(np.float64), 10, 100)
    return jax.jit(advance).lower(np.zeros((4, packed_size(d))), None, target.arguments).compile()


MODELS = {
    "eight schools": lambda: (eight_schools(), DATA),
    "student_t": lambda: regression("student_t"),
    "poisson_log": lambda: regression("poisson_log"),
    "bernoulli_logit": lambda: generalized_linear("bernoulli_logit", "logits"),
    "normal": lambda: generalized_linear("normal", "mu"),
}


@cache
def chain(name: str) -> jax.stages.Compiled:
    return compiled(*MODELS[name]())


@pytest.mark.parametrize("name", MODELS)
def test_the_loop_of_a_chain_is_one_native_function(name):
    assert stepwise_loops(chain(name)) == []


@pytest.mark.parametrize("name", ["eight schools", "student_t"])
def test_a_call_is_few_steps(name):
    """XLA runs up to eight in the thread that calls, and hands more to others, which costs a call 0.1 ms."""
    assert len(steps(chain(name))) <= 8


def test_without_the_rewrites_a_scatter_runs_step_by_step():
    assert stepwise_loops(compiled(*regression("student_t"), rewrites=[])) != []


def test_a_cholesky_factor_runs_step_by_step():
    assert stepwise_loops(compiled(*gaussian_process())) != []
