"""NumPyro's distributions and bijections under the names of the model language."""

from __future__ import annotations

import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import transforms


def _interval(lower, upper):
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)]
    )


# Missing are those which NumPyro does not have, or has to 7 digits only (by a beta function: the negative and the beta
# binomial), or whose gradients it cuts off.
NUMPYRO = {
    "normal": dist.Normal,
    "half_normal": dist.HalfNormal,
    "lognormal": dist.LogNormal,
    "student_t": dist.StudentT,
    "cauchy": dist.Cauchy,
    "half_cauchy": dist.HalfCauchy,
    "exponential": dist.Exponential,
    "gamma": dist.Gamma,
    "inverse_gamma": dist.InverseGamma,
    "beta": dist.Beta,
    "uniform": dist.Uniform,
    "laplace": dist.Laplace,
    "logistic": dist.Logistic,
    "weibull": lambda alpha, sigma: dist.Weibull(sigma, alpha),
    "bernoulli": dist.BernoulliProbs,
    "bernoulli_logit": dist.BernoulliLogits,
    "binomial": lambda n, p: dist.BinomialProbs(p, n),
    "binomial_logit": lambda n, logits: dist.BinomialLogits(logits, n),
    "poisson": dist.Poisson,
    "poisson_log": lambda eta: dist.Poisson(jnp.exp(eta)),
    "dirichlet": dist.Dirichlet,
    "mv_normal": lambda mu, cov: dist.MultivariateNormal(mu, covariance_matrix=cov),
    "mv_normal_cholesky": lambda mu, chol: dist.MultivariateNormal(mu, scale_tril=chol),
    "gaussian_random_walk": lambda sigma: dist.GaussianRandomWalk(sigma, 6),
    "gumbel": dist.Gumbel,
    "soft_laplace": dist.SoftLaplace,
    "asymmetric_laplace": dist.AsymmetricLaplace,
    "von_mises": dist.VonMises,
    "chi_square": dist.Chi2,
    "pareto": dist.Pareto,
    "log_uniform": dist.LogUniform,
    "gompertz": dist.Gompertz,
    "levy": dist.Levy,
    "kumaraswamy": dist.Kumaraswamy,
    "beta_proportion": dist.BetaProportion,
    "mv_normal_precision": lambda mu, tau: dist.MultivariateNormal(mu, precision_matrix=tau),
    "mv_normal_low_rank": dist.LowRankMultivariateNormal,
    "mv_student_t_cholesky": dist.MultivariateStudentT,
    "lkj_cholesky": lambda eta: dist.LKJCholesky(3, eta),
    "wishart": lambda nu, scale: dist.Wishart(nu, scale_matrix=scale),
    "matrix_normal": dist.MatrixNormal,
    "car": lambda mu, adjacency, alpha, tau: dist.CAR(mu, alpha, tau, adjacency),
}

BIJECTIONS = {
    "identity": transforms.IdentityTransform,
    "log": transforms.ExpTransform,
    "softplus": transforms.SoftplusTransform,
    "logit": transforms.SigmoidTransform,
    "interval": _interval,
    "stick_breaking": transforms.StickBreakingTransform,
    "ordered": transforms.OrderedTransform,
    "correlation_cholesky": transforms.CorrCholeskyTransform,
}
