"""What is benchmarked: each model's title, the parameters whose draws count, and how often it is run.

The programs are in `models.exs` (Nutkin), `contestants/numpyro_models.py`, `contestants/pymc_models.py` and
`contestants/stan/`, the data in `data.py`, under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """`parameters`: variables that every contestant draws, all of their elements. `seeds`: at most so many, of a slow
    model. `headline`: one of those in the mean of the summary. `peers`: the only ones that run it, None for all."""

    title: str
    parameters: tuple[str, ...]
    seeds: int | None = None
    headline: bool = False
    peers: tuple[str, ...] | None = None


MODELS: dict[str, Model] = {
    "eight_schools": Model("Eight schools, non-centred", ("mu", "tau", "theta"), headline=True),
    "logistic": Model("Logistic regression, 500 x 20", ("alpha", "beta"), headline=True),
    "radon": Model("Radon-like hierarchy, 85 groups, 919 rows", ("mu", "tau", "b", "sigma", "alpha"), headline=True),
    "stochastic_volatility": Model("Stochastic volatility, T = 100", ("sigma", "nu", "z"), headline=True),
    "funnel": Model("Funnel, non-centred, d = 10", ("y", "x"), headline=True),
    "logistic_large": Model("Logistic regression, 20000 x 50", ("alpha", "beta"), seeds=3, headline=True),
    "exmc_simple": Model("eXMC simple, d = 2", ("mu", "sigma")),
    "exmc_medium": Model("eXMC medium, d = 5", ("mu_global", "sigma_global", "alpha", "beta", "sigma_obs")),
    "exmc_stress": Model(
        "eXMC stress, d = 8",
        ("mu_pop", "sigma_pop", "group_1", "group_2", "group_3", "noise_1", "noise_2", "noise_3"),
    ),
    "exmc_eight_schools": Model("eXMC eight schools, centred", ("mu", "tau", "theta")),
    "exmc_funnel": Model("eXMC funnel, centred, d = 10", ("y", "x")),
    "exmc_logistic": Model("eXMC logistic regression, 500 x 20", ("alpha", "beta")),
    "exmc_sv": Model("eXMC stochastic volatility, centred, d = 102", ("sigma", "nu", "s")),
    # Trees of depth 10 throughout: other peers take far longer still.
    "diamonds": Model("posteriordb diamonds, 5000 x 24", ("b", "Intercept", "sigma"), seeds=1, peers=("nutpie",)),
    "ar5": Model("posteriordb arK, autoregression of order 5", ("alpha", "beta", "sigma")),
    "blr": Model("posteriordb blr, linear regression, 100 x 5", ("beta", "sigma")),
}
