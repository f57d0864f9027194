"""Predictions from draws: their distributions, shapes and names, what they need, and that batches change nothing."""

import numpy as np
import pytest
from scipy import stats

import nutkin
from engine.builder import Builder
from nutkin.compile import bind_prediction, compilations
from nutkin.errors import InvalidData, InvalidModel, InvalidOption
from nutkin.model import read

X, Y = np.array([0.5, 1.0, -2.0]), np.array([0.1, 3.0, -1.0])
DRAWS = {"a": np.linspace(-1, 1, 600).reshape(2, 300), "s": np.full((2, 300), 0.5)}


def regression(**fields):
    b = Builder()
    a = b.rv("a", "normal", {"mu": 0, "sigma": 5})
    s = b.rv("s", "half_normal", {"sigma": 2})
    mu = b.call("multiply", a, b.data("x"))
    b.deterministic("mu", mu)
    y = b.data("y")
    weight = {"weight": b.data("w")} if "weight" in fields else {}
    b.observe("obs", "normal", {"mu": mu, "sigma": s}, y, **weight)
    b.deterministic("mean_y", b.call("mean", y))
    return b.tree()


def test_random_values_of_observations_at_new_data():
    found = nutkin.predict(regression(), DRAWS, {"x": [10.0, 20.0]}, variables=["mu", "obs"])
    assert {name: value.shape for name, value in found.items()} == {"mu": (2, 300, 2), "obs": (2, 300, 2)}
    np.testing.assert_allclose(found["mu"], DRAWS["a"][..., None] * [10.0, 20.0])
    z = (found["obs"] - found["mu"]) / 0.5
    assert stats.kstest(z.ravel(), stats.norm.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(z[..., 0].ravel(), z[..., 1].ravel())[0, 1]) < 0.15
    assert abs(np.corrcoef(z[0].ravel(), z[1].ravel())[0, 1]) < 0.15


def test_the_shape_of_a_value_that_is_given_is_that_of_its_predictions():
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 1})
    b.observe("obs", "normal", {"mu": mu, "sigma": 1}, b.data("y"))
    draws = {"mu": np.zeros((1, 5))}
    assert nutkin.predict(b.tree(), draws, {"y": np.zeros((4, 3))})["obs"].shape == (1, 5, 4, 3)
    assert nutkin.predict(b.tree(), draws)["obs"].shape == (1, 5)


def test_log_likelihood_of_each_value():
    data = {"x": X, "y": Y, "w": np.array([1.0, 2.0, 0.0])}
    found = nutkin.predict(regression(weight=True), DRAWS, data, of="log_likelihood")
    assert list(found) == ["obs"]
    expected = stats.norm.logpdf(Y, DRAWS["a"][..., None] * X, 0.5) * data["w"]
    np.testing.assert_allclose(found["obs"], expected, rtol=1e-12)


def test_a_prior_draws_all_parameters_each_given_those_before():
    b = Builder()
    tau = b.rv("tau", "gamma", {"alpha": 4, "beta": 2})
    theta = b.rv("theta", "normal", {"mu": 3, "sigma": tau}, shape=[2], centered=False)
    cuts = b.rv("cuts", "normal", {"mu": 0, "sigma": 2}, shape=[3], transform="ordered")
    b.observe("counts", "poisson", {"mu": b.call("exp", theta)}, b.data("n"))
    b.observe("grade", "ordered_logistic", {"eta": 0.5, "cutpoints": cuts}, b.data("g"))
    found = nutkin.predict(b.tree(), {}, redraw=None, shape=(1, 3000))
    assert list(found) == ["tau", "theta", "cuts", "counts", "grade"]
    assert stats.kstest(found["tau"].ravel(), stats.gamma(4, scale=1 / 2).cdf).pvalue > 1e-3
    z = (found["theta"] - 3) / found["tau"][..., None]
    assert stats.kstest(z.ravel(), stats.norm.cdf).pvalue > 1e-3
    assert (np.diff(found["cuts"]) >= 0).all()
    assert stats.kstest(found["cuts"].ravel(), stats.norm(0, 2).cdf).pvalue > 1e-3
    assert found["counts"].dtype == np.int64
    assert found["counts"].shape == (1, 3000, 2)
    u = np.exp(found["theta"])
    z = (found["counts"] - u) / np.sqrt(u)
    assert abs(z.mean()) < 0.06
    assert z.std() == pytest.approx(1, abs=0.06)
    assert set(np.unique(found["grade"])) <= {0, 1, 2, 3}


def test_parameters_drawn_anew_follow_from_those_that_are_given():
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 1})
    theta = b.rv("theta", "normal", {"mu": mu, "sigma": 0.1}, shape=[5])
    b.observe("obs", "normal", {"mu": theta, "sigma": 0.01}, b.data("y"))
    draws = {"mu": np.arange(2000.0).reshape(1, -1), "theta": np.zeros((1, 2000, 3))}
    with pytest.raises(InvalidData, match="draws of theta have not its shape"):
        nutkin.predict(b.tree(), draws)
    found = nutkin.predict(b.tree(), draws, redraw=["theta"])
    assert list(found) == ["theta", "obs"]
    z = (found["theta"] - draws["mu"][..., None]) / 0.1
    assert stats.kstest(z.ravel(), stats.norm.cdf).pvalue > 1e-3
    np.testing.assert_allclose(found["obs"], found["theta"], atol=0.06)


def test_draws_depend_on_no_batch_and_on_no_other_variable():
    tree, data = regression(), {"x": X}
    whole = nutkin.predict(tree, DRAWS, data, variables=["obs"], seed=3)["obs"]
    few = {name: array[:, :7] for name, array in DRAWS.items()}
    np.testing.assert_array_equal(nutkin.predict(tree, few, data, variables=["mu", "obs"], seed=3)["obs"], whole[:, :7])
    assert not np.isclose(nutkin.predict(tree, few, data, variables=["obs"], seed=4)["obs"], whole[:, :7]).any()


def test_new_values_of_the_same_shapes_compile_nothing():
    tree = regression()
    nutkin.predict(tree, DRAWS, {"x": X}, variables=["obs"])
    before = compilations()
    nutkin.predict(tree, {name: array + 0.1 for name, array in DRAWS.items()}, {"x": X + 1}, variables=["obs"], seed=9)
    assert compilations() == before


def test_single_precision():
    found = nutkin.predict(regression(), DRAWS, {"x": X}, variables=["mu", "obs"], precision="f32")
    assert {value.dtype for value in found.values()} == {np.dtype(np.float32)}


def test_missing_values_that_were_imputed_are_no_part_of_a_prior():
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 1})
    missing = b.rv("y_missing", "flat", {}, shape=[1])
    value = b.call("concatenate", b.constant(np.array([1.0, 2.0])), missing)
    b.observe("y", "normal", {"mu": mu, "sigma": 1}, value)
    found = nutkin.predict(b.tree(), {}, redraw=None, shape=(1, 4), tensors=b.tensors)
    assert {name: array.shape for name, array in found.items()} == {"mu": (1, 4), "y": (1, 4, 3)}
    draws = {"mu": np.zeros((1, 2)), "y_missing": np.full((1, 2, 1), 3.0)}
    likelihood = nutkin.predict(b.tree(), draws, of="log_likelihood", tensors=b.tensors)["y"]
    np.testing.assert_allclose(likelihood[0, 0], stats.norm.logpdf([1, 2, 3]))


def wrong(error, text, *args, **options):
    with pytest.raises(error) as raised:
        nutkin.predict(*args, **options)
    assert str(raised.value) == text


def test_what_is_needed_and_not_there():
    wrong(
        InvalidData,
        "the data slot y is needed for mean_y; expected values for y; found x; give them, or leave mean_y out: the "
        "option `variables` names what is asked for",
        regression(),
        DRAWS,
        {"x": X},
    )
    wrong(
        InvalidData,
        "the parameter s is needed for obs; expected draws of s; found a; give them, name it in `redraw` to draw it "
        "anew, or leave obs out: the option `variables` names what is asked for",
        regression(),
        {"a": DRAWS["a"]},
        {"x": X, "y": Y},
    )
    wrong(
        InvalidData,
        "the data slot y is needed for obs; expected values for y; found x; give them, or leave obs out: the option "
        "`variables` names what is asked for",
        regression(),
        DRAWS,
        {"x": X},
        of="log_likelihood",
    )


def test_names_that_there_are_not():
    with pytest.raises(InvalidData, match="the model has no data slot z"):
        nutkin.predict(regression(), DRAWS, {"x": X, "z": 1})
    with pytest.raises(InvalidOption, match="no value to predict ob; expected mu, obs, mean_y; found ob"):
        nutkin.predict(regression(), DRAWS, {"x": X}, variables=["ob"])
    with pytest.raises(InvalidOption, match="the model has no parameter q"):
        nutkin.predict(regression(), DRAWS, {"x": X}, redraw=["q"])
    with pytest.raises(InvalidOption, match="the model has no observation mu"):
        nutkin.predict(regression(), DRAWS, {"x": X, "y": Y}, of="log_likelihood", variables=["mu"])


def test_draws_of_other_forms():
    for a in (np.zeros(300), np.zeros((2, 299)), np.zeros((2, 300), bool)):
        with pytest.raises(InvalidData, match=r"the draws of [as] do not fit"):
            nutkin.predict(regression(), {"s": DRAWS["s"], "a": a}, {"x": X})
    with pytest.raises(InvalidData, match="no draws to predict from"):
        nutkin.predict(regression(), {}, {"x": X})


def test_what_has_no_random_values():
    b = Builder()
    x = b.rv("x", "flat", {})
    b.observe("y", "normal", {"mu": x, "sigma": 1}, 0.5)
    with pytest.raises(InvalidModel, match=r"x: there are no random draws of its distribution; .*found flat"):
        nutkin.predict(b.tree(), {}, redraw=None, shape=(1, 1))
    b = Builder()
    x = b.rv("x", "normal", {"mu": np.array([0.0, 1.0]), "sigma": 1}, transform="ordered")
    with pytest.raises(InvalidModel, match="ordered variable whose elements have unequal distributions"):
        nutkin.predict(b.tree(), {}, redraw=None, shape=(1, 1), tensors=b.tensors)
    b = Builder()
    s = b.rv("s", "half_normal", {"sigma": 1})
    b.observe("y", {"name": "interval_censored", "components": ["normal"]}, {"0.mu": 0, "0.sigma": s}, b.data("ends"))
    with pytest.raises(InvalidModel, match=r"y: there are no random draws of interval_censored\(normal\)"):
        nutkin.predict(b.tree(), {"s": np.ones((1, 1))}, {"ends": np.zeros((3, 2))})
    with pytest.raises(InvalidModel, match="there is nothing to predict"):
        nutkin.predict({"version": 1, "nodes": []}, {}, shape=(1, 1))


def test_factors_that_random_parameters_leave_out_are_named():
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1})
    z = b.rv("z", "normal", {"mu": 0, "sigma": 1})
    b.factor("of_x", x)
    b.factor("of_z", z)
    prediction = bind_prediction(read(b.tree()), {"z": np.zeros((1, 1))}, {}, {}, redraw=["x"])
    assert prediction.left_out == ("of_x",)


def test_draws_that_are_no_numbers() -> None:
    draws = {**DRAWS, "s": np.where(np.arange(600).reshape(2, 300) == 307, np.nan, 0.5)}
    wrong(
        InvalidData,
        "the draws of s are not all numbers; expected finite numbers; found NaN at [1, 7]; "
        "the first places are the chain and the draw",
        regression(),
        draws,
        {"x": X},
    )
    with pytest.raises(InvalidData, match="the draws of a do not fit"):
        nutkin.predict(regression(), {"a": np.zeros((2, 0)), "s": np.zeros((2, 0))}, {"x": X})


def test_draws_that_no_distribution_of_the_model_has():
    draws = {**DRAWS, "s": np.where(np.arange(600).reshape(2, 300) == 307, -0.5, 0.5)}
    wrong(
        InvalidData,
        "the draws of s are not all values of its distribution; expected a number of at least 0; found -0.5 at [1, 7]; "
        "the first places are the chain and the draw; predict from draws of this model",
        regression(),
        draws,
        {"x": X, "y": Y},
    )
    assert nutkin.predict(regression(), draws, {"x": X}, variables=["mu"])["mu"].shape == (2, 300, 3)


def rv(dist, args, **fields):
    return lambda b: b.rv("p", dist, args, **fields)


def above_q(b):
    return b.rv("p", "pareto", {"y_min": b.rv("q", "half_normal", {"sigma": 1}), "alpha": 1}, shape=[2])


def above_a_computed_number(b):
    return b.rv("p", "pareto", {"y_min": b.call("exp", b.rv("q", "half_normal", {"sigma": 1})), "alpha": 1})


ORDERED = rv("normal", {"mu": 0, "sigma": 1}, shape=[2], transform="ordered")
SIMPLEX = rv("dirichlet", {"alpha": np.ones(2)})
CORRELATION = rv("lkj_corr", {"eta": 1}, shape=[2, 2])
TENTH = rv("uniform", {"lower": -1, "upper": 0.1})


@pytest.mark.parametrize(
    ("write", "draws", "found"),
    [
        (TENTH, [0.0, 0.2], "0.2 at [0, 1]"),
        (TENTH, np.float32([-1, 0.1]), None),
        (rv("gamma", {"alpha": 1, "beta": 1}), [1.0, -1e-3], "-0.001 at [0, 1]"),
        (rv("gamma", {"alpha": 1, "beta": 1}), [1.0, 0.0], None),
        (above_q, [[3.0, 2.0], [2.0, 1.5]], "1.5 at [0, 1, 1]"),
        (above_a_computed_number, [-3.0, -3.0], None),
        (SIMPLEX, [[0.5, 0.6], [0.5, 0.5]], "[0.5, 0.6] at [0, 0]"),
        (SIMPLEX, [[1.0, 0.0], [0.5, 0.5]], None),
        (ORDERED, [[0.0, 1.0], [1.0, 0.0]], "[1.0, 0.0] at [0, 1]"),
        (ORDERED, [[1.0, 1.0], [0.0, 1.0]], None),
        (CORRELATION, [[[1.0, 0.5], [0.4, 1.0]]] * 2, "[[1.0, 0.5], [0.4, 1.0]] at [0, 0]"),
        (CORRELATION, np.ones((2, 2, 2)), None),
    ],
)
def test_the_edge_of_a_support_is_left_to_rounding(write, draws, found):
    b = Builder()
    b.deterministic("twice", b.call("multiply", write(b), 2.0))
    given = {"p": np.asarray(draws)[None]}
    if any(node.get("name") == "q" for node in b.nodes):
        given["q"] = np.array([[1.0, 2.0]])
    if found is None:
        assert bind_prediction(read(b.tree()), given, {}, b.tensors).draws == 2
    else:
        with pytest.raises(InvalidData, match="not all values of its distribution") as caught:
            bind_prediction(read(b.tree()), given, {}, b.tensors)
        assert (caught.value.node, caught.value.found) == ("p", found)
