"""A run that goes on from a checkpoint draws what it would have drawn, to the last bit."""

import contextlib
import copy
import random
from functools import cache

import msgspec
import numpy as np
import pytest

from engine.builder import Builder
from engine.schools import DATA, eight_schools
from nutkin.compile import bind
from nutkin.errors import InvalidCheckpoint
from nutkin.model import read
from nutkin.sampler import Options, Run, centered, compile_sampler

CASES = [
    {},
    {"adaptation": "windowed", "warmup": 60},
    {"mass_matrix": "dense"},
    {"mass_matrix": "dense", "adaptation": "windowed", "warmup": 60},
    {"keep_warmup": True, "thin": 3, "draws": 50},
    {"chains": 1, "warmup": 0},
    {"precision": "f32", "chains": 4},
    {"precision": "f32", "mass_matrix": "dense"},
    {"target_ess": 150.0},
    {"adaptation": "windowed", "warmup": 60, "max_rhat": 1.05, "draws": 400},
]


def seeds(count):
    return pytest.mark.parametrize("seed", range(count))


def target(tree, precision="f64", **data):
    arrays = {k: np.asarray(v) for k, v in data.items()}
    return bind(read(tree.tree()), arrays, tree.tensors, precision=precision)


@cache
def sampler(form="diagonal", precision="f64"):
    return compile_sampler(target(eight_schools(), precision=precision, **DATA), mass_matrix=form)


def sampler_of(asked):
    return sampler(asked.mass_matrix, asked.precision)


def options(**changes):
    return Options(**{"chains": 3, "draws": 120, "warmup": 190, "seed": 5, **changes})


class Recorder:
    """Advances a run in calls of random sizes, chain by chain in random order, and keeps the draws that were sent."""

    def __init__(self, run, chance):
        self.run, self.chance = run, chance
        self.sent = [[] for _ in run.chains]
        self.ready = [chain for chains in run.first_calls() for chain in chains]

    def step(self):
        """One call of one chain, and what follows from it."""
        chain = self.ready.pop(self.chance.randrange(len(self.ready)))
        if not (chain.waits or chain.finished):
            chain._most_next = self.chance.choice([1, 3, 40, 1000])
            self.sent[chain.index] += self.run.advance([chain])
        chain.settle()
        if chain.waits:
            self.ready += [other for others in self.run.meet(chain) for other in others]
        elif not chain.finished:
            self.ready.append(chain)

    def steps(self, most=10**9):
        while self.ready and most > 0:
            self.step()
            most -= 1

    def lose(self):
        """A call whose draws are not sent, as by a program that ends meanwhile."""
        chain = self.chance.choice(self.run.chains)
        if not (chain.waits or chain.finished):
            self.run.advance([chain])


def finished(run, seed=0):
    recorder = Recorder(run, random.Random(seed))
    recorder.steps()
    return recorder


def values(chunks, phase):
    found = [chunk for chunk in chunks if chunk.phase == phase]
    starts = np.cumsum([0, *(chunk.count for chunk in found)])
    assert [chunk.start for chunk in found] == list(starts[:-1])  # neither a gap nor a repeat
    names = [*found[0].variables, *found[0].stats] if found else []
    return {name: np.concatenate([(chunk.variables | chunk.stats)[name] for chunk in found]) for name in names}


def assert_same(found, wanted):
    for ours, theirs in zip(found, wanted, strict=True):
        for phase in ("warmup", "sample"):
            assert_equal(values(ours, phase), values(theirs, phase))


def assert_equal(one, other):
    """Two trees."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = [*one.values()], [*other.values()]
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for ours, theirs in zip(one, other, strict=True):
            assert_equal(ours, theirs)
    else:
        np.testing.assert_array_equal(one, other)


@cache
def uninterrupted(encoded):
    asked = msgspec.msgpack.decode(encoded, type=Options)
    recorder = finished(Run(sampler_of(asked), asked))
    return recorder.sent, [chain.summary() for chain in recorder.run.chains]


@seeds(80)
def test_draws_are_those_of_the_uninterrupted_run(seed):
    """Which is interrupted once to three times, anywhere."""
    chance = random.Random(seed)
    asked = options(**CASES[seed % len(CASES)])
    sent = [[] for _ in range(asked.chains)]
    tree = None
    for most in [*(chance.randrange(60) for _ in range(chance.randrange(1, 4))), 10**9]:
        run = Run(sampler_of(asked), asked, checkpoint=tree)
        recorder = Recorder(run, chance)
        recorder.steps(most)
        tree = copy.deepcopy(run.checkpoint())
        recorder.lose()
        assert_equal(run.checkpoint(), tree)
        for before, later in zip(sent, recorder.sent, strict=True):
            before += later
    expected, summaries = uninterrupted(msgspec.msgpack.encode(asked))
    assert_same(sent, expected)
    for chain, wanted in zip(run.chains, summaries, strict=True):
        found = chain.summary()
        for name in ("draws", "warmup", "divergences", "step_size", "gradients"):
            assert getattr(found, name) == getattr(wanted, name)
        np.testing.assert_array_equal(found.inverse_mass, wanted.inverse_mass)


@pytest.mark.parametrize("case", [{}, {"adaptation": "windowed", "warmup": 60}, {"thin": 2}])
def test_a_run_that_is_over_goes_on_for_more_draws(case):
    """As if so many had been asked for at once; what is sent of them may change."""
    first = finished(Run(sampler(), options(draws=70, **case)))
    more = options(draws=110, variables=("mu",), **case)
    rest = finished(Run(sampler(), more, checkpoint=first.run.checkpoint()))
    expected, _ = uninterrupted(msgspec.msgpack.encode(options(draws=110, **case)))
    for chain in range(3):
        mu = np.concatenate([chunk.variables["mu"] for chunk in first.sent[chain] + rest.sent[chain]])
        np.testing.assert_array_equal(mu, values(expected[chain], "sample")["mu"])


def test_what_a_pilot_decided_is_kept():
    tree = Builder()
    mu = tree.rv("mu", "normal", {"mu": 0, "sigma": 1})
    tau = tree.rv("tau", "half_normal", {"sigma": 1})
    tree.rv("x", "normal", {"mu": mu, "sigma": tau}, shape=[3], centered="auto")
    asked = Options(chains=2, draws=30, seed=2)
    plain = compile_sampler(target(tree))
    decided, pilot = centered(plain, asked)
    expected = finished(Run(decided, asked, pilot)).sent
    first = Recorder(Run(decided, asked, pilot), random.Random(3))
    first.steps(20)
    tree = first.run.checkpoint()
    again, kept = centered(plain, asked, checkpoint=tree)
    np.testing.assert_array_equal(kept.weights["x"], pilot.weights["x"])
    assert kept.gradients == pilot.gradients
    rest = finished(Run(again, asked, kept, tree))
    assert_same([a + b for a, b in zip(first.sent, rest.sent, strict=True)], expected)


def test_what_was_drawn_is_not_taken_back():
    tree = finished(Run(sampler(), options(draws=50))).run.checkpoint()
    with pytest.raises(InvalidCheckpoint, match="more draws than are asked for"):
        Run(sampler(), options(draws=49), checkpoint=tree)


def test_a_rule_goes_on_with_its_variables():
    recorder = Recorder(Run(sampler(), options(target_ess=1e6, variables=("mu",))), random.Random(0))
    recorder.steps(40)
    with pytest.raises(InvalidCheckpoint, match="the same ones"):
        Run(sampler(), options(target_ess=1e6, variables=("tau",)), checkpoint=recorder.run.checkpoint())


def test_a_checkpoint_of_something_else_is_refused():
    tree = Run(sampler(), options()).checkpoint()
    other = compile_sampler(target(eight_schools(), y=[1.0] * 8, sigma=DATA["sigma"]))
    cases = [(sampler(), {"seed": 6}, "options"), (sampler(), {"chains": 2}, "options"), (other, {}, "data")]
    for program, changes, what in cases:
        with pytest.raises(InvalidCheckpoint, match=what):
            Run(program, options(**changes), checkpoint=tree)
    newer = copy.deepcopy(tree)
    newer["of"]["versions"]["jaxlib"] = "9.9"
    with pytest.raises(InvalidCheckpoint, match="versions") as error:
        Run(sampler(), options(), checkpoint=newer)
    assert error.value.found == "jaxlib 9.9"


@seeds(150)
def test_a_damaged_checkpoint_gives_an_error_of_ours_or_a_run(seed):
    """One place of the tree is replaced. What is accepted can be sampled."""
    chance = random.Random(seed)
    asked = options(mass_matrix="dense", target_ess=50.0)
    tree = copy.deepcopy(half_way(msgspec.msgpack.encode(asked)))
    container, key = chance.choice([*places(tree)])
    container[key] = chance.choice([None, -1, 2**70, 1.5, "x", [], {}, np.zeros(3), np.full((1, 1), np.nan), True])
    with contextlib.suppress(InvalidCheckpoint):
        Recorder(Run(sampler("dense"), asked, checkpoint=tree), chance).steps(30)


@cache
def half_way(encoded):
    recorder = Recorder(Run(sampler("dense"), msgspec.msgpack.decode(encoded, type=Options)), random.Random(0))
    recorder.steps(40)
    return recorder.run.checkpoint()


def places(tree):
    """Each as the container and the key in it."""
    for key, value in [*(tree.items() if isinstance(tree, dict) else enumerate(tree))]:
        yield tree, key
        if isinstance(value, (dict, list)):
            yield from places(value)
