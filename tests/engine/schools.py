"""Eight schools, non-centred, as a tree; and data for it."""

from engine.builder import Builder

DATA = {"y": [28.0, 8, -3, 7, -1, 1, 18, 12], "sigma": [15.0, 10, 16, 11, 9, 11, 10, 18]}


def eight_schools() -> Builder:
    tree = Builder()
    y, sigma = tree.data("y"), tree.data("sigma")
    mu = tree.rv("mu", "normal", {"mu": 0, "sigma": 5})
    tau = tree.rv("tau", "half_cauchy", {"sigma": 5})
    theta = tree.rv("theta", "normal", {"mu": mu, "sigma": tau}, shape=[8], centered=False)
    tree.observe("obs", "normal", {"mu": theta, "sigma": sigma}, y)
    tree.deterministic("best", tree.call("reduce_max", theta))
    return tree
