"""What is compiled, and when: counted by JAX's own events."""

import gc

import jax
import numpy as np
import pytest

import nutkin
from engine.builder import Builder
from engine.schools import DATA, eight_schools
from nutkin.compile import Executables, bind, compilations
from nutkin.errors import CompileFailed, InvalidModel
from nutkin.model import read
from nutkin.sampler import compile_sampler, has_programs


def sampled(tree, data, **options):
    before = compilations()
    nutkin.sample(tree.tree(), data, tensors=tree.tensors, chains=2, draws=20, warmup=20, **options)
    return compilations() - before


def test_fresh_data_of_the_same_shape_compiles_nothing():
    tree = eight_schools()
    tree.deterministic("unlike_any_other_test", tree.call("negate", 1.5))
    assert sampled(tree, DATA) == 1
    fresh = {name: np.asarray(values) + 1.5 for name, values in DATA.items()}
    assert sampled(tree, fresh) == 0
    assert sampled(tree, fresh, seed=9, target_accept=0.9, max_tree_depth=5, thin=2, adaptation="windowed") == 0


def test_another_shape_or_type_or_precision_compiles():
    tree = Builder()
    mu = tree.rv("mu", "normal", {"mu": 0, "sigma": 5})
    tree.observe("obs", "normal", {"mu": mu, "sigma": 1}, tree.data("y"))
    assert sampled(tree, {"y": np.ones(5)}) == 1
    assert sampled(tree, {"y": np.ones(6)}) == 1
    assert sampled(tree, {"y": np.ones(6, np.int64)}) == 1
    assert sampled(tree, {"y": np.ones(6)}, precision="f32") == 1


def constant_model(values):
    tree = Builder()
    mu = tree.rv("mu", "normal", {"mu": 0, "sigma": 5})
    tree.observe("obs", "normal", {"mu": mu, "sigma": 1}, np.asarray(values))
    return tree


def test_small_constants_are_part_of_the_program_and_large_ones_are_not():
    assert sampled(constant_model(np.zeros(100)), {}) == 1
    assert sampled(constant_model(np.zeros(100)), {}) == 0
    assert sampled(constant_model(np.ones(100)), {}) == 1
    assert sampled(constant_model(np.zeros(1000)), {}) == 1
    assert sampled(constant_model(np.ones(1000)), {}) == 0


def test_the_values_of_data_reach_the_program():
    tree = Builder()
    tree.rv("x", "normal", {"mu": tree.data("centre"), "sigma": 0.1})
    for centre in (-3.0, 7.0):
        fit = nutkin.sample(tree.tree(), {"centre": centre}, draws=200, warmup=200)
        assert abs(fit.variables["x"].mean() - centre) < 0.1


def test_the_least_recently_used_program_is_dropped():
    programs = Executables(capacity=2)

    def get(key):
        return programs.get((key,), lambda x: x + 1, (np.float64(0),))[1]

    assert [get("a"), get("b"), get("a"), get("c"), get("a"), get("b")] == [False, False, True, False, True, False]


def test_a_program_that_xla_refuses_is_a_typed_error():
    import jax

    def refuse(x):
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((2**62,), np.float64), x)

    with pytest.raises(CompileFailed, match="XLA refused"):
        Executables().get(("huge",), refuse, (np.float64(0),))


def test_a_sampler_says_whether_it_compiled():
    tree = eight_schools()
    tree.deterministic("unlike_the_others", tree.call("negate", 2.5))
    arrays = {name: np.asarray(values) for name, values in DATA.items()}
    target = bind(read(tree.tree()), arrays, {})
    assert not has_programs(target)
    assert not compile_sampler(target).cached
    assert has_programs(target)
    assert compile_sampler(target).cached


def test_a_model_without_parameters_is_not_sampled():
    tree = Builder()
    tree.observe("obs", "normal", {"mu": 0, "sigma": 1}, 0.5)
    with pytest.raises(InvalidModel, match="no free parameter"):
        nutkin.sample(tree.tree())


def test_programs_that_are_dropped_are_gone():
    """JAX would keep them."""

    def alive():
        gc.collect()
        return len(jax.devices()[0].client.live_executables())

    executables = Executables(capacity=2)
    before = alive()
    for i in range(50):
        program, _ = executables.get((i,), lambda x, i=i: x + i, (np.zeros(3),))
    assert alive() <= before + 2 + 16
    np.testing.assert_array_equal(program(np.ones(3)), np.full(3, 50.0))
    jax.clear_caches()
    np.testing.assert_array_equal(program(np.ones(3)), np.full(3, 50.0))
