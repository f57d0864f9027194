"""Data that grow: a padded model has the log density, gradient and outputs of the one that it was made from."""

import jax
import numpy as np
import pytest

import nutkin
from engine.model.growing import CASES, Growing, autoregression, grouped_regression, robust
from nutkin.compile import bind, compilations
from nutkin.model import read
from nutkin.model.growth import room, rooms
from nutkin.model.types import Spec

LENGTHS = (
    {"rows": 40, "users": 150, "items": 9, "steps": 7, "units": 5},
    {"rows": 128, "users": 256, "items": 100, "steps": 60, "units": 3},
)  # of one room each


def bound(case, lengths, *, grows, seed=0, **options):
    """-> (the target of a case, the function to its data)."""
    b = Growing(grows=grows)
    data = case(b)(lengths, np.random.default_rng(seed))
    return bind(read(b.tree()), data, b.tensors, **options)


def program(target):
    """(position, arguments) -> log density, gradient, outputs, compiled in one piece."""

    def evaluate(position, arguments):
        value, gradient = jax.value_and_grad(target.log_density)(position, arguments)
        return value, gradient, target.outputs(position, arguments)

    return jax.jit(evaluate, compiler_options={"xla_backend_optimization_level": 0})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_padded_model_is_the_same_density(case):
    programs = {}  # the padded ones, for all lengths, by what was rewritten
    for seed, lengths in enumerate(LENGTHS):
        plain = bound(case, lengths, grows=False, seed=seed, rewrites=[])
        position = 0.5 * np.random.default_rng(seed + 7).normal(size=plain.dimension)
        value, gradient, outputs = program(plain)(position, plain.arguments)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
        for rewrites in ([], None):
            padded = bound(case, lengths, grows=True, seed=seed, rewrites=rewrites)
            run = programs.setdefault(padded.rewrites, program(padded))
            found_value, found_gradient, found_outputs = run(position, padded.arguments)
            np.testing.assert_allclose(found_value, value, rtol=1e-9)
            np.testing.assert_allclose(found_gradient, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())
            assert padded.deterministic == plain.deterministic
            for output in plain.deterministic:
                found = found_outputs[output.name][tuple(map(slice, output.shape))]
                np.testing.assert_allclose(found, outputs[output.name], rtol=1e-9, atol=1e-12, err_msg=output.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_padded_model_is_rewritten_as_the_one_that_it_was_made_from_and_is_the_same_for_all_lengths(case):
    plain, *padded = (
        bound(case, lengths, grows=grows) for lengths, grows in ((LENGTHS[1], False), *((n, True) for n in LENGTHS))
    )
    assert set(plain.rewrites) <= set(padded[0].rewrites)
    assert padded[0].key == padded[1].key


@pytest.mark.parametrize("case", [grouped_regression, autoregression], ids=lambda case: case.__name__)
def test_a_padded_model_is_the_same_density_in_single_precision(case):
    plain, padded = (bound(case, LENGTHS[0], grows=grows, precision="f32", rewrites=[]) for grows in (False, True))
    position = 0.5 * np.random.default_rng(3).normal(size=plain.dimension)
    for found, expected in zip(padded.value_and_gradient(position), plain.value_and_gradient(position), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("precision", ["f64", "f32"])
@pytest.mark.parametrize("name", ["f16", "f32", "f64", "s32", "u8", "u2"])
def test_types_are_those_of_the_model(name, precision):
    targets = []
    for grows in (False, True):
        b = Growing(grows=grows)
        x = b.call("as_type", b.slot("x"), type=name)
        for op in ("sum", "product", "mean", "variance", "standard_deviation", "logsumexp", "norm", "cumulative_sum"):
            b.deterministic(op, b.call(op, x))
        b.deterministic("dot", b.call("dot", x, x))
        b.deterministic("last", b.call("slice", x, starts=[-1], lengths=[1]))
        b.deterministic("others", b.call("slice", x, starts=[0], lengths=[-1]))
        targets.append(bind(read(b.tree()), {"x": np.ones(40)}, {}, precision=precision))
    assert targets[0].deterministic == targets[1].deterministic


def test_draws_have_as_many_rows_as_the_data_and_one_program():
    counts = []
    for rows in (40, 90, 129):
        b = Growing(grows=True)
        data = robust(b)({"rows": rows}, np.random.default_rng(0))
        before = compilations()
        fit = nutkin.sample(b.tree(), data, tensors=b.tensors, chains=2, draws=10, warmup=10)
        counts.append(compilations() - before)
        assert fit.variables["eta"].shape == (2, 10, rows)
        eta = fit.variables["a"][..., None] + fit.variables["b"] @ data["x"].T + fit.variables["u"][..., data["g"]]
        np.testing.assert_allclose(fit.variables["eta"], eta, rtol=1e-10)
    assert counts == [1, 0, 1]


def test_a_program_is_for_lengths_up_to_a_power_of_two():
    assert [room(length) for length in (1, 127, 128, 129, 1024, 1025, 100_000)] == [
        128,
        128,
        128,
        256,
        1024,
        2048,
        131072,
    ]
    assert len({room(length) for length in range(100, 100_001)}) == 11


def test_what_is_computed_from_the_data_alone_makes_the_steps_longer():
    """Two programs for each of six steps."""
    b = Growing(grows=True)
    x, a = b.slot("x"), b.parameter("a")
    b.factor("term", b.call("multiply", x, a))
    model = read(b.tree())
    assert rooms(model, {"x": Spec((200,), "f64")}) == {"rows": 256}
    b.factor("centred", b.call("multiply", b.call("subtract", x, b.call("mean", x)), a))
    model = read(b.tree())
    sizes = sorted({rooms(model, {"x": Spec((length,), "f64")})["rows"] for length in range(100, 100_001, 50)})
    assert sizes == [128, 512, 2048, 8192, 32768, 131072]


def test_a_model_is_debugged_on_the_data_that_there_are():
    b = Growing(grows=True)
    x, a = b.slot("x"), b.parameter("a")
    b.factor("term", b.call("log", b.call("multiply", x, a)))
    target = bind(read(b.tree()), {"x": np.append(np.ones(39), -1.0)}, {})
    cause = target.diagnose(np.array([1.0])).cause
    assert (cause.name, cause.place) == ("log", (39,))
