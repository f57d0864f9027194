"""Row kernels that XLA:CPU compiles into native loops: likelihoods, segment sums, cumulative sums.

XLA:CPU turns a `while` into one native function only if nothing in it is a dot, a scatter or a custom call; so these
consist of elementwise arithmetic, small reductions, dynamic slices and nested loops. Gradients are analytic.
"""
