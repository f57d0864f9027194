"""The diagnostics of ArviZ, for the tests of Nutkin.Diagnostics.

    python diagnostics_reference.py --generate > ../fixtures/diagnostics.txt
    python diagnostics_reference.py FILE            # the same file with ArviZ's values

A file is a sequence of cases. A case is a line `case NAME`, one line `chain X X ...` for each chain, and, in what is
printed, one line `expect DIAGNOSTIC VALUE` for each diagnostic.
"""

import sys
import warnings
from importlib.metadata import version

import numpy as np
from arviz_stats.base import array_stats


def expectations(chains):
    yield "mean", np.mean(chains)
    yield "sd", np.std(chains, ddof=1)
    yield "r_hat", array_stats.rhat(chains)
    yield "ess_bulk", array_stats.ess(chains, method="bulk")
    yield "ess_tail", array_stats.ess(chains, method="tail", prob=(0.05, 0.95))
    yield "ess_mean", array_stats.ess(chains, method="mean")
    yield "ess_sd", array_stats.ess(chains, method="sd")
    yield "mcse_mean", array_stats.mcse(chains, method="mean")
    if int(version("arviz-stats").split(".")[0]) >= 1:  # before, it was worked out as for normal draws
        yield "mcse_sd", array_stats.mcse(chains, method="sd")
    for probability in (0.05, 0.5, 0.9):
        yield f"quantile {probability}", np.quantile(chains, probability)
        yield f"ess_quantile {probability}", array_stats.ess(chains, method="quantile", prob=probability)
        yield f"mcse_quantile {probability}", array_stats.mcse(chains, method="quantile", prob=probability)


def autoregressive(rng, chains, draws, coefficient):
    values = rng.normal(size=(chains, draws))
    for i in range(1, draws):
        values[:, i] = coefficient * values[:, i - 1] + np.sqrt(1 - coefficient**2) * values[:, i]
    return values


def generated():
    rng = np.random.default_rng(20190319)
    yield "independent", rng.normal(size=(4, 100))
    yield "sticky", autoregressive(rng, 4, 200, 0.9)
    yield "antithetic", autoregressive(rng, 2, 100, -0.7)
    yield "heavy_tails", rng.standard_cauchy(size=(3, 51)) * 1e12
    yield "tied", rng.poisson(1.5, size=(4, 60)).astype(float)
    yield "two_values", rng.integers(0, 2, size=(2, 40)).astype(float)
    yield "apart", rng.normal(size=(3, 41)) + np.array([[0.0], [3.0], [-1.0]])
    yield "one_chain", rng.normal(size=(1, 80))
    yield "trend", np.linspace(0, 1, 60) + 0.05 * rng.normal(size=(2, 60))
    yield "few", rng.normal(size=(2, 5))
    yield "short", rng.normal(size=(2, 3))
    yield "still", np.full((2, 10), 1.25)


def read(path):
    name, chains = None, []
    with open(path) as file:
        for line in file:
            key, *values = line.split()
            if key == "case":
                if name:
                    yield name, np.array(chains)
                name, chains = values[0], []
            elif key == "chain":
                chains.append([float(value) for value in values])
    yield name, np.array(chains)


def main():
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for name, chains in generated() if sys.argv[1] == "--generate" else read(sys.argv[1]):
        print("case", name)
        for chain in chains:
            print("chain", *(repr(float(value)) for value in chain))
        for diagnostic, value in expectations(chains):
            print("expect", diagnostic, repr(float(value)))


if __name__ == "__main__":
    main()
