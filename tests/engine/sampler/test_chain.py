import math

import numpy as np
import pytest

from engine.builder import Builder
from engine.schools import DATA, eight_schools
from nutkin.compile import bind
from nutkin.errors import InitFailed, InvalidOption
from nutkin.model import read
from nutkin.sampler import STATISTICS, Init, Options, Run, advance, compile_sampler
from nutkin.sampler.state import unpack


def target(tree, **data):
    return bind(read(tree.tree()), {k: np.asarray(v) for k, v in data.items()}, tree.tensors)


@pytest.fixture(scope="module")
def sampler():
    return compile_sampler(target(eight_schools(), **DATA))


def finish(run, *, cut=None, together=False):
    """All chunks of each chain; `cut` fixes how many iterations a call makes; all chains make them `together`."""
    chunks = [[] for _ in run.chains]
    ready = list(run.chains)
    while ready:
        chains, ready = (ready, []) if together else (ready[:1], ready[1:])
        for chain in chains if cut is not None else ():
            chain._most_next = cut
        for chunk in advance(chains):
            chunks[chunk.chain].append(chunk)
        for chain in chains:
            if chain.waits:
                ready += [other for others in run.meet(chain) for other in others]
            elif not chain.finished:
                ready.append(chain)
    return chunks


def collect(sampler, *, cut=None, together=False, **options):
    """Chain 1 of a run of two, and all its chunks."""
    run = Run(sampler, Options(**{"chains": 2, "draws": 60, "warmup": 80, "seed": 3, **options}))
    return run.chains[1], finish(run, cut=cut, together=together)[1]


def joined(chunks, phase="sample"):
    return {
        name: np.concatenate([(c.variables | c.stats)[name] for c in chunks if c.phase == phase])
        for name in ("theta", "mu", "best", *STATISTICS)
    }


@pytest.mark.parametrize("adaptation", ["pooled", "windowed"])
@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_draws_do_not_depend_on_how_the_run_is_cut(sampler, cut, adaptation):
    """A window of 160 iterations is longer than the blocks in which its rows are summed."""
    options = {"warmup": 300, "adaptation": adaptation, "keep_warmup": True}
    _, expected = collect(sampler, **options)
    _, found = collect(sampler, cut=cut, **options)
    for phase in ("warmup", "sample"):
        wanted = joined(expected, phase)
        for name, values in joined(found, phase).items():
            np.testing.assert_array_equal(values, wanted[name])


@pytest.mark.parametrize("options", [{"keep_warmup": True}, {"thin": 7}, {"variables": ("best", "theta")}])
def test_draws_do_not_depend_on_which_chains_share_a_call(sampler, options):
    """Of the calls of three chains with up to 1024 rows."""
    runs = [Run(sampler, Options(chains=3, draws=400, warmup=190, seed=3, **options)) for _ in range(2)]
    apart, shared = (finish(run, together=together) for run, together in zip(runs, (False, True), strict=True))
    for one, other in zip(apart, shared, strict=True):
        for phase in {chunk.phase for chunk in one}:
            for group in ("variables", "stats"):
                for name in getattr(one[0], group):
                    values = [
                        np.concatenate([getattr(c, group)[name] for c in chunks if c.phase == phase])
                        for chunks in (one, other)
                    ]
                    np.testing.assert_array_equal(*values)
    assert [chain.summary().gradients for chain in runs[0].chains] == [c.summary().gradients for c in runs[1].chains]


@pytest.mark.parametrize(
    ("iteration", "cores", "shared"),
    [
        (1e-6, 1, [[0, 2, 4], [1, 3, 5]]),  # the program has four slots
        (2e-4, 1, [[0, 3], [1, 4], [2, 5]]),  # 24 ms in all
        (2e-4, 2, [[0, 4], [1, 5], [2], [3]]),  # as many for each core
        (2e-4, 3, [[0, 3], [1, 4], [2, 5]]),
        (2e-4, 16, [[0], [1], [2], [3], [4], [5]]),
        (1.0, 1, [[0], [1], [2], [3], [4], [5]]),
        (math.inf, 2, [[0], [1], [2], [3], [4], [5]]),
    ],
)
def test_chains_share_calls_that_are_short(sampler, monkeypatch, iteration, cores, shared):
    """The windows are of 10 and 20 iterations; a call shall take some 10 ms."""
    monkeypatch.setattr("nutkin.sampler.run.cores", lambda: cores)
    sampler.pace.seconds = 2 * iteration
    run = Run(sampler, Options(chains=6))
    calls = run.first_calls()
    for chain in run.chains:
        while not chain.waits:
            advance([chain])
        chain._seconds_each = iteration
        met = run.meet(chain)
    for found in (calls, met):
        assert [[chain.index for chain in chains] for chains in found] == shared
    assert 1e-6 < sampler.pace.seconds < 0.1


def test_draws_of_which_few_fit_into_a_call(sampler):
    """A call takes as many iterations as draws fit into 2 MiB: here 3, and 1."""
    for size in (80_000, 200_000):
        tree = Builder()
        x = tree.rv("x", "normal", {"mu": 0, "sigma": 1})
        tree.deterministic("y", tree.call("multiply", x, np.ones(size)))
        few = compile_sampler(target(tree))
        assert few.capacity == (3 if size == 80_000 else 1)
        few.pace.seconds = 1e-6
        run = Run(few, Options(draws=4, warmup=10))
        calls = [len(chains) for chains in run.first_calls()]
        assert sum(calls) == 4
        assert max(calls) <= few.slots <= few.capacity
        for chunks in finish(run):
            values = np.concatenate([chunk.variables["y"] for chunk in chunks])
            np.testing.assert_array_equal(
                values, np.concatenate([c.variables["x"] for c in chunks])[:, None] + 0 * values
            )


def test_chunks_keep_no_more_than_their_draws(sampler):
    _, chunks = collect(sampler, cut=7)
    arrays = [array for chunk in chunks for array in (chunk.variables | chunk.stats).values()]
    assert all(array.base is None or array.base.nbytes == array.nbytes for array in arrays)


def test_draws_depend_on_seed_and_chain(sampler):
    mu = joined(collect(sampler)[1])["mu"]
    assert not np.array_equal(mu, joined(collect(sampler, seed=4)[1])["mu"])
    run = Run(sampler, Options(chains=2, draws=60, warmup=80, seed=3))
    assert not np.array_equal(mu, joined(finish(run)[0])["mu"])


def test_large_seeds_are_no_chains_of_small_ones(sampler):
    first = [Run(sampler, Options(chains=2, seed=seed)).chains for seed in (0, 2**32, 2**64 - 1)]
    keys = {chain.state.key for chains in first for chain in chains}
    assert len(keys) == 6


def test_chunks_are_consecutive_and_have_all_variables(sampler):
    chain, chunks = collect(sampler, cut=7, keep_warmup=True)
    for phase, length in (("warmup", 80), ("sample", 60)):
        of_phase = [c for c in chunks if c.phase == phase]
        assert [c.start for c in of_phase] == list(np.cumsum([0, *(c.count for c in of_phase)]))[:-1]
        assert sum(c.count for c in of_phase) == length
    for chunk in chunks:
        assert {k: v.shape[1:] for k, v in chunk.variables.items()} == {"mu": (), "tau": (), "theta": (8,), "best": ()}
        assert all(v.shape == (chunk.count,) for v in chunk.stats.values())
        np.testing.assert_array_equal(chunk.variables["best"], chunk.variables["theta"].max(1))
    assert chain.summary().draws == 60


def test_statistics_are_consistent(sampler):
    chain, chunks = collect(sampler, draws=300)
    stats = joined(chunks)
    assert (stats["n_steps"] >= 2 ** (stats["tree_depth"] - 1)).all()
    assert (stats["n_steps"] < 2 ** stats["tree_depth"]).all()
    assert ((stats["acceptance_rate"] > 0) & (stats["acceptance_rate"] <= 1)).all()
    assert (stats["energy"] > -stats["lp"]).all()  # a kinetic energy is positive
    assert len(set(stats["step_size"])) == 300
    sizes = stats["step_size"] / chain.summary().step_size
    assert 0.9 < sizes.min() < 0.91 < 1.09 < sizes.max() < 1.1
    assert stats["diverging"].sum() == chain.summary().divergences
    assert [stats[name].dtype.str[1:] for name in ("diverging", "tree_depth", "lp")] == ["u1", "i4", "f8"]


def test_lp_is_the_log_density_of_the_draw(sampler):
    _, chunks = collect(sampler)
    for i in (0, 30, 59):
        draw = {name: np.concatenate([c.variables[name] for c in chunks])[i] for name in ("mu", "tau", "theta")}
        position, _ = sampler.target.unconstrain(draw)
        value, _ = sampler.target.value_and_gradient(position)
        assert value == pytest.approx(joined(chunks)["lp"][i], rel=1e-9)


@pytest.mark.parametrize("cut", [3, 1000])
def test_thinning_keeps_every_nth_draw(sampler, cut):
    every = joined(collect(sampler, draws=60)[1])
    third = joined(collect(sampler, draws=20, thin=3, cut=cut)[1])
    for name in every:
        np.testing.assert_array_equal(third[name], every[name][2::3])


def test_selected_variables(sampler):
    _, chunks = collect(sampler, variables=["best"])
    assert all(set(c.variables) == {"best"} for c in chunks)
    with pytest.raises(InvalidOption, match="rho") as error:
        collect(sampler, variables=["mu", "rho"])
    assert "`theta`" in error.value.expected


def test_tree_depth_is_capped(sampler):
    assert joined(collect(sampler, max_tree_depth=2)[1])["tree_depth"].max() == 2


def test_a_deeper_cap_compiles_a_deeper_program(sampler):
    deep = compile_sampler(sampler.target, max_tree_depth=11)
    assert not deep.cached
    np.testing.assert_array_equal(joined(collect(deep)[1])["mu"], joined(collect(sampler)[1])["mu"])


def test_no_warmup(sampler):
    chain, chunks = collect(sampler, warmup=0)
    assert chain.summary().warmup == 0
    assert sum(c.count for c in chunks) == 60
    assert np.isfinite(chain.summary().step_size)


def test_progress_counts_iterations_and_gradients(sampler):
    run = Run(sampler, Options(chains=1, draws=50, warmup=50))
    before = run.chains[0].progress()
    assert (before.phase, before.iteration, before.total) == ("warmup", 0, 100)
    finish(run)
    after = run.chains[0].progress()
    assert (after.phase, after.iteration, after.total) == ("sample", 100, 100)
    assert after.gradients > 100


def test_starts_at_given_values(sampler):
    values = {"mu": 4.0, "tau": 2.0, "theta": np.arange(8.0)}
    chain = Run(sampler, Options(chains=1, warmup=0, draws=1, init=Init(values=values))).chains[0]
    position, _ = sampler.target.unconstrain(values)
    np.testing.assert_allclose(chain.state.point.position, position)
    assert (unpack(chain._packed)[2] == 0).all()
    assert [chunk.count for chunk in advance([chain])] == [1]


def test_a_start_outside_the_support_is_refused(sampler):
    with pytest.raises(InvalidOption, match="tau"):
        Run(sampler, Options(init=Init(values={"tau": -1.0})))


def no_start(tree, **options):
    chain = Run(compile_sampler(target(tree)), Options(chains=1, **options)).chains[0]
    with pytest.raises(InitFailed) as error:
        advance([chain])
    return error.value


def test_an_impossible_model_names_the_node():
    tree = Builder()
    x = tree.rv("x", "normal", {"mu": 0, "sigma": 1})
    tree.factor("never", tree.call("log", tree.call("multiply", x, 0)))
    error = no_start(tree)
    assert "no starting point in 100 tries: log(multiply(x, 0)) is -inf, and with it never, where" in error.message
    assert (error.node, error.index, error.found) == ("log", 5, "-inf")
    assert "positive" in error.hint


def test_the_report_is_that_of_a_point_that_was_tried():
    tree = Builder()
    x = tree.rv("x", "normal", {"mu": 0, "sigma": 1})
    tree.factor("never", tree.call("log", tree.call("subtract", tree.call("negate", tree.call("exp", x)), 1)))
    at = [float(no_start(tree, seed=seed).message.rpartition("x = ")[2]) for seed in (1, 2)]
    assert at[0] != at[1]
    assert all(0 < abs(x) < 2 / 2**11 for x in at)  # the last try is close to the centre
    values = {"x": np.array(1.5)}
    assert no_start(tree, init=Init(values=values)).message.endswith("at x = 1.5")


def test_the_same_node_is_looked_for_in_a_rewritten_model():
    tree = Builder()
    sigma = tree.rv("sigma", "normal", {"mu": 0, "sigma": 1})
    scale = tree.call("negate", tree.call("exp", sigma))
    tree.observe("obs", "normal", {"mu": 0.0, "sigma": scale}, tree.constant(np.arange(20.0)))
    bound = bind(read(tree.tree()), {}, tree.tensors)
    assert [rewrite.node for rewrite in bound.rewrites] == ["obs"]
    with pytest.raises(InitFailed) as error:
        advance([Run(compile_sampler(bound), Options(chains=1)).chains[0]])
    assert error.value.node == "obs"
    assert error.value.expected == "sigma to be a positive number"


def test_a_start_is_found_behind_a_barrier():
    """Only a part of the random starts has a finite density: they are tried until one does."""
    tree = Builder()
    x = tree.rv("x", "normal", {"mu": 0, "sigma": 1})
    tree.factor("wall", tree.call("log", tree.call("subtract", x, 1)))
    run = Run(compile_sampler(target(tree)), Options(chains=4, draws=50, warmup=100))
    for chunks in finish(run):
        assert all((chunk.variables["x"] > 1).all() for chunk in chunks)


def test_float32_runs_in_float32():
    tree = eight_schools()
    bound = bind(read(tree.tree()), {k: np.asarray(v) for k, v in DATA.items()}, {}, precision="f32")
    _, chunks = collect(compile_sampler(bound), draws=500, warmup=500, precision="f32")
    mu = np.concatenate([c.variables["mu"] for c in chunks])
    assert mu.dtype == np.float32
    assert abs(mu.mean() - 4.4) < 1.5
