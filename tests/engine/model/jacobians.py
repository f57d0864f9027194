"""The change of volume from the coordinates of a variable to its value, by autodiff."""

from __future__ import annotations

import numpy as np


def log_volume(transform: str, jacobian: np.ndarray) -> float:
    """log |d value / d coordinates| of a Jacobian (*value, coordinates).

    Of values that others determine, those that do not count as elements of volume are left out; values that sum to zero
    lie in a plane, whose volume is that of the Gram matrix.
    """
    coordinates = jacobian.shape[-1]
    match transform:
        case "stick_breaking":
            jacobian = jacobian[..., :-1, :]
        case "correlation" | "correlation_cholesky" | "covariance":
            size = jacobian.shape[-2]
            below = np.tril_indices(size, 0 if transform == "covariance" else -1)
            jacobian = jacobian[..., below[0], below[1], :]
        case "zero_sum":
            flat = jacobian.reshape(-1, coordinates)
            return 0.5 * np.linalg.slogdet(flat.T @ flat)[1]
    return np.linalg.slogdet(jacobian.reshape(coordinates, coordinates))[1]
