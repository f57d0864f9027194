"""Distributions made of others: against SciPy, by their total probability, their gradients, and as variables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from engine.builder import Builder
from engine.model import densities
from nutkin.errors import InvalidData, InvalidModel


def made(name, *components):
    return {"name": name, "components": list(components)}


def log_prob(dist, args, value, *, precision="f64", as_a_whole=True):
    """By way of a variable, so that nothing is known before the run. If all are finite, so is their derivative by it.

    Compiled as a whole, or each operation on its own: these are shared by programs whose arrays have one shape.
    """
    b = Builder()
    zero = b.rv("zero", "normal", {"mu": 0.0, "sigma": 1.0})
    moved = {name: b.call("add", b.constant(np.asarray(x, float)), zero) for name, x in args.items()}
    value = b.call("add", b.constant(np.asarray(value, float)), zero)
    b.deterministic("terms", b.log_prob(dist, moved, value, of="density"))
    density, inputs = densities.bind(b.tree(), {}, b.tensors, precision=precision)

    def evaluate(position):
        terms, pull_back = jax.vjp(lambda q: density.outputs(q, inputs)["terms"], position)
        return terms, *pull_back(jnp.ones_like(terms))

    terms, derivative = (jax.jit(evaluate) if as_a_whole else evaluate)(jnp.zeros(1))
    assert np.isfinite(derivative).all() or not np.isfinite(terms).all()
    return np.asarray(terms)


NORMALS = made("mixture", "normal", "normal")
TWO_NORMALS = {"0.mu": -1, "0.sigma": 0.5, "1.mu": 2, "1.sigma": 1.5}


def test_a_mixture_of_listed_components():
    x = np.linspace(-60, 60, 25)
    terms = log_prob(NORMALS, {"weights": [0.3, 0.7], **TWO_NORMALS}, x)
    expected = np.logaddexp(np.log(0.3) + stats.norm(-1, 0.5).logpdf(x), np.log(0.7) + stats.norm(2, 1.5).logpdf(x))
    np.testing.assert_allclose(terms, expected, rtol=1e-12)


def test_a_mixture_over_the_last_axis_of_its_parameters_and_not_over_others():
    mu, sigma, weights = np.array([[0, 1, 2], [3.0, 4, 5]]), 0.7, np.array([[0.2, 0.3, 0.5], [0.6, 0, 0.4]])
    x = np.array([[0.5], [1.5], [-2.0]])
    terms = log_prob(made("mixture", "normal"), {"weights": weights, "0.mu": mu, "0.sigma": sigma}, x)
    density = (weights * stats.norm(mu, sigma).pdf(x[..., None])).sum(-1)
    assert terms.shape == (3, 2)
    np.testing.assert_allclose(terms, np.log(density), rtol=1e-12)


def test_a_mixture_of_vectors():
    mu, cov = np.array([[0.0, 1], [2, 3]]), np.array([np.eye(2), [[2, 0.3], [0.3, 1]]])
    x = np.random.default_rng(0).normal(size=(5, 2))
    terms = log_prob(made("mixture", "mv_normal"), {"weights": [0.4, 0.6], "0.mu": mu, "0.cov": cov}, x)
    parts = [stats.multivariate_normal(m, c).pdf(x) for m, c in zip(mu, cov, strict=True)]
    np.testing.assert_allclose(terms, np.log(0.4 * parts[0] + 0.6 * parts[1]), rtol=1e-12)


def test_a_mixture_of_unequal_supports_has_the_values_of_each():
    args = {"weights": [0.5, 0.5], "0.sigma": 1.0, "1.lower": -3.0, "1.upper": -1.0}
    terms = log_prob(made("mixture", "half_normal", "uniform"), args, [-2.0, 0.5, -5.0])
    np.testing.assert_allclose(terms[:2], [np.log(0.25), np.log(0.5) + stats.halfnorm.logpdf(0.5)])
    assert terms[2] == -np.inf


def test_a_weight_of_zero_leaves_a_component_out_also_of_the_gradient():
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0.0, "sigma": 1.0})
    args = {"weights": np.array([1.0, 0.0]), "0.mu": mu, "0.sigma": 1.0, "1.mu": mu, "1.sigma": 2.0}
    b.observe("y", NORMALS, args, 0.5)
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    value, gradient = densities.log_density_and_gradient(density, inputs)(np.array([0.2]))
    expected = stats.norm(0, 1).logpdf(0.2) + stats.norm(0.2, 1).logpdf(0.5)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(gradient, [-0.2 + 0.3], rtol=1e-12)


COUNTS = np.arange(200.0)


def test_zero_inflation():
    """The second time without extra zeros, where it is the distribution itself."""
    terms = log_prob(made("zero_inflated", "poisson"), {"0.mu": 3.0, "p": np.array([[0.25], [0.0]])}, COUNTS)
    expected = 0.75 * stats.poisson(3).pmf(COUNTS) + 0.25 * (COUNTS == 0)
    np.testing.assert_allclose(np.exp(terms[0]), expected, atol=1e-15)
    np.testing.assert_allclose(terms[1], stats.poisson(3).logpmf(COUNTS), rtol=1e-11)


def test_hurdle_of_counts_and_of_positive_numbers():
    terms = log_prob(made("hurdle", "neg_binomial"), {"0.mu": 2.0, "0.alpha": 1.5, "p": 0.4}, COUNTS)
    base = stats.nbinom(1.5, 1.5 / 3.5)
    expected = np.where(COUNTS == 0, 0.4, 0.6 * base.pmf(COUNTS) / (1 - base.pmf(0)))
    np.testing.assert_allclose(np.exp(terms), expected, atol=1e-15)
    x = np.array([0.0, 0.5, 3.0])
    terms = log_prob(made("hurdle", "gamma"), {"0.alpha": 2.0, "0.beta": 1.5, "p": 0.4}, x)
    np.testing.assert_allclose(terms[1:], np.log(0.6) + stats.gamma(2, scale=1 / 1.5).logpdf(x[1:]), rtol=1e-12)
    np.testing.assert_allclose(terms[0], np.log(0.4))


TRUNCATED = [
    ("normal", {"mu": 1.0, "sigma": 2.0}, stats.norm(1, 2), -1.0, 2.5),
    ("normal", {"mu": 0.0, "sigma": 1.0}, stats.norm(0, 1), 8.0, 9.0),
    ("normal", {"mu": 0.0, "sigma": 1.0}, stats.norm(0, 1), -9.0, -8.0),
    ("student_t", {"nu": 3.0, "mu": 0.5, "sigma": 2.0}, stats.t(3, 0.5, 2), -1.0, 2.5),
    ("gamma", {"alpha": 2.5, "beta": 1.5}, stats.gamma(2.5, scale=1 / 1.5), 0.5, 2.5),
    ("weibull", {"alpha": 1.5, "sigma": 2.0}, stats.weibull_min(1.5, scale=2), 0.5, 2.5),
    ("beta", {"alpha": 2.0, "beta": 3.0}, stats.beta(2, 3), 0.2, 0.9),
    ("poisson", {"mu": 3.5}, stats.poisson(3.5), 1.0, 6.0),
    ("binomial", {"n": 12.0, "p": 0.4}, stats.binom(12, 0.4), 2.0, 9.0),
]


def component(args):
    return {f"0.{name}": value for name, value in args.items()}


@pytest.mark.parametrize(("name", "args", "known", "lower", "upper"), TRUNCATED)
@pytest.mark.parametrize("sides", [("lower",), ("upper",), ("lower", "upper")])
def test_truncation(name, args, known, lower, upper, sides):
    limits = {side: {"lower": lower, "upper": upper}[side] for side in sides}
    is_discrete = hasattr(known, "pmf") and known.dist.__class__.__name__.endswith(("poisson_gen", "binom_gen"))
    x = np.resize(np.arange(lower, upper + 1), 8) if is_discrete else np.linspace(lower, upper, 8)
    terms, outside = (
        log_prob(made("truncated", name), {**component(args), **limits}, values, as_a_whole=False)
        for values in (x, np.resize([lower - 1, upper + 1], 8))
    )
    low = limits.get("lower", -np.inf) - is_discrete
    high = limits.get("upper", np.inf)
    mass = known.sf(low) - known.sf(high) if low > known.mean() else known.cdf(high) - known.cdf(low)
    expected = (known.logpmf(x) if is_discrete else known.logpdf(x)) - np.log(mass)
    np.testing.assert_allclose(terms, expected, rtol=1e-9, atol=1e-9)
    assert "lower" not in sides or outside[0] == -np.inf
    assert "upper" not in sides or outside[1] == -np.inf


@pytest.mark.parametrize(
    ("name", "args", "limits", "support"),
    [
        ("normal", {"mu": 0.5, "sigma": 2.0}, {"lower": 0.0}, (0, np.inf)),
        ("normal", {"mu": 0.5, "sigma": 2.0}, {"upper": 1.0}, (-np.inf, 1)),
        ("cauchy", {"mu": 0.5, "sigma": 2.0}, {"lower": -1.0, "upper": 1.0}, (-1, 1)),
        ("gamma", {"alpha": 2.5, "beta": 1.5}, {"lower": 0.5}, (0.5, np.inf)),
        ("gamma", {"alpha": 2.5, "beta": 1.5}, {"upper": 2.5}, (0, 2.5)),
        ("beta", {"alpha": 2.5, "beta": 1.5}, {"lower": 0.25, "upper": 0.5}, (0.25, 0.5)),
        ("beta", {"alpha": 2.5, "beta": 1.5}, {"upper": 0.5}, (0, 0.5)),
    ],
)
def test_a_truncated_variable_stays_within_and_integrates_to_one(name, args, limits, support):
    b = Builder()
    b.rv("x", made("truncated", name), {**component(args), **limits})
    density, inputs = densities.bind(b.tree())
    q = np.linspace(-40, 40, 20001)
    value = jax.jit(jax.vmap(lambda q: density.log_density(q[None], inputs)))(q)
    # Over the unconstrained line.
    np.testing.assert_allclose(np.trapezoid(np.exp(value), q), 1, rtol=1e-6)
    x = jax.jit(jax.vmap(lambda q: density.outputs(q[None], inputs)["x"]))(q[8000:12000])
    assert x.min() >= support[0]
    assert x.max() <= support[1]


def test_censoring_on_each_side_with_limits_of_each_row():
    mu, sigma = 0.5, 1.5
    known = stats.norm(mu, sigma)
    value, upper = np.array([0.3, 2.0, 1.0, -1.0]), np.array([np.inf, 2.0, 4.0, np.inf])
    args = {"0.mu": mu, "0.sigma": sigma, "lower": -1.0, "upper": upper}
    terms = log_prob(made("censored", "normal"), args, value)
    expected = [known.logpdf(0.3), known.logsf(2.0), known.logpdf(1.0), known.logcdf(-1.0)]
    np.testing.assert_allclose(terms, expected, rtol=1e-12)
    counts = log_prob(made("censored", "poisson"), {"0.mu": 3.0, "upper": 5.0}, [2.0, 5.0])
    np.testing.assert_allclose(counts, [stats.poisson(3).logpmf(2), stats.poisson(3).logsf(4)], rtol=1e-11)


def test_interval_censoring_with_ends_that_may_be_infinite():
    known = stats.norm(0.5, 1.5)
    ends = np.array([[-1.0, 2.0], [-np.inf, 0.0], [1.0, np.inf], [30.0, 31.0], [-np.inf, np.inf]])
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0.0, "sigma": 1.0})
    terms = b.log_prob(made("interval_censored", "normal"), {"0.mu": mu, "0.sigma": 1.5}, ends)
    b.deterministic("terms", terms)
    b.factor("f", b.call("sum", terms))
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    q = np.array([0.5])
    right = [known.logcdf(0), known.logsf(1), np.log(known.sf(30) - known.sf(31)), 0]
    expected = [np.log(known.cdf(2) - known.cdf(-1)), *right]
    np.testing.assert_allclose(densities.outputs(density, q, inputs)["terms"], expected, rtol=1e-9, atol=1e-12)
    function = densities.log_density_and_gradient(density, inputs)
    numeric = densities.finite_differences(lambda at: function(at)[0], q)
    np.testing.assert_allclose(function(q)[1], numeric, rtol=1e-8)


def test_they_nest():
    inner = made("truncated", "normal")
    args = {"weights": [0.5, 0.5], "0.0.mu": 0.0, "0.0.sigma": 1.0, "0.lower": 0.0, "1.rate": 2.0}
    terms = log_prob(made("mixture", inner, "exponential"), args, [0.7, -0.5])
    expected = np.log(0.5 * stats.halfnorm.pdf(0.7) + 0.5 * stats.expon(scale=0.5).pdf(0.7))
    np.testing.assert_allclose(terms[0], expected, rtol=1e-12)
    assert terms[1] == -np.inf


def test_f32_stays_f32():
    terms = log_prob(NORMALS, {"weights": [0.3, 0.7], **TWO_NORMALS}, [0.5], precision="f32")
    assert terms.dtype == np.float32


WRONG = [
    (made("mixtur", "flat"), {}, 0.5, "no such combination"),
    (made("truncated", "flat", "flat"), {}, 0.5, "truncated is made of one distribution"),
    (
        made("mixture", "normal", "poisson"),
        {"weights": [0.5, 0.5], "0.mu": 0, "0.sigma": 1, "1.mu": 1},
        0.5,
        "must be alike",
    ),
    (made("mixture", "uniform"), {"weights": [0.5, 0.5], "0.lower": 0, "0.upper": 1}, 0.5, "a support without bounds"),
    (NORMALS, {"weights": [0.5, 0.5], "0.mu": 0, "0.sigma": 1, "1.mu": 1}, 0.5, "wrong parameters for normal"),
    (made("truncated", "normal"), {"0.mu": 0, "0.sigma": 1}, 0.5, "wrong parameters of truncated itself"),
    (made("truncated", "flat"), {"lower": 0}, 0.5, "needs a distribution function"),
    (made("zero_inflated", "normal"), {"0.mu": 0, "0.sigma": 1, "p": 0.5}, 0.5, "zero_inflated is made of counts"),
    (made("hurdle", "normal"), {"0.mu": 0, "0.sigma": 1, "p": 0.5}, 0.5, "hurdle is made of counts or of positive"),
    (NORMALS, {"weights": [0.5, 0.6], **TWO_NORMALS}, 0.5, "the parameter weights"),
    (NORMALS, {"weights": [0.5, 0.5], **TWO_NORMALS, "1.sigma": -1}, 0.5, "the parameter sigma of component 1"),
    (made("interval_censored", "normal"), {"0.mu": 0, "0.sigma": 1}, [2.0, 1.0], "the observed value"),
    (made("censored", "normal"), {"0.mu": 0, "0.sigma": 1, "upper": 1}, [2.0], "the observed value"),
]


@pytest.mark.parametrize(("dist", "args", "value", "message"), WRONG)
def test_wrong_combinations_say_what_is_wrong(dist, args, value, message):
    b = Builder()
    arguments = {name: np.asarray(x, float) if isinstance(x, list) else x for name, x in args.items()}
    b.observe("terms", dist, arguments, b.data("y"))

    def bind():
        density, inputs = densities.bind(b.tree(), {"y": np.asarray(value)}, b.tensors)
        density.check_values(inputs)

    with pytest.raises((InvalidModel, InvalidData), match=message):
        bind()


P = np.array([0.1, 0.2, 0.3, 0.25, 0.15])


def test_categories_have_all_their_values_in_combinations():
    q = P[::-1]
    mixed = log_prob(
        made("mixture", "categorical", "categorical"), {"weights": [0.3, 0.7], "0.p": P, "1.p": q}, np.arange(5)
    )
    np.testing.assert_allclose(mixed, np.log(0.3 * P + 0.7 * q), rtol=1e-12)
    along = log_prob(made("mixture", "categorical"), {"weights": [0.3, 0.7], "0.p": np.stack([P, q])}, np.arange(5))
    np.testing.assert_allclose(along, mixed, rtol=1e-12)
    inflated = log_prob(made("zero_inflated", "categorical_logit"), {"0.logits": np.log(P), "p": 0.2}, np.arange(6))
    np.testing.assert_allclose(inflated[:5], np.log(0.8 * P + 0.2 * (np.arange(5) == 0)), rtol=1e-12)
    assert inflated[5] == -np.inf


NEVER_ZERO = {
    "geometric": ("geometric", {"0.p": 0.5}, 0.5 ** np.arange(1.0, 5)),
    "discrete_uniform": ("discrete_uniform", {"0.lower": 1, "0.upper": 4}, np.full(4, 0.25)),
    "truncated": (
        made("truncated", "poisson"),
        {"0.0.mu": 1, "0.lower": 1},
        stats.poisson(1).pmf([1, 2, 3, 4]) / stats.poisson(1).sf(0),
    ),
}


@pytest.mark.parametrize("name", ["zero_inflated", "hurdle"])
@pytest.mark.parametrize("case", NEVER_ZERO)
def test_more_zeros_of_what_is_never_zero(name, case):
    component, args, masses = NEVER_ZERO[case]
    found = log_prob(made(name, component), {**args, "p": 0.2}, np.arange(5.0))
    np.testing.assert_allclose(np.exp(found), np.append(0.2, 0.8 * masses), rtol=1e-10)


def test_each_component_has_a_weight():
    for weights in ([1.0], [0.2, 0.3, 0.5]):
        with pytest.raises(InvalidModel, match="a mixture has a weight for each of its components"):
            log_prob(NORMALS, {"weights": weights, **TWO_NORMALS}, 0.5)
