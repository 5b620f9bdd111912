"""Cosine: products of unit vectors, the same for a row whatever stands beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def cosines(rows: Floats, vector: Floats) -> Floats:
    """Cosine (n,) of each unit row (n, d) with a unit vector (d,).

    A matrix product of BLAS rounds a row by its place in the matrix, so that a tool which a caller may not see would
    shift the last digit of those that they may. This sum does not, and takes as long.
    """
    products: Floats = np.einsum("ij,j->i", rows, vector)
    return products
