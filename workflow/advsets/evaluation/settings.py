"""Settings of the evaluation. Defaults stand in the configuration schema alone."""

from __future__ import annotations

from dataclasses import dataclass

from advsets.errors import UserError


@dataclass(frozen=True)
class EvaluateSettings:
    """How much is resampled.

    Parameters
    ----------
    n_bootstrap : int
        Bootstrap draws over examples, at least 1.
    confidence : float
        Share of the draws between the interval bounds, in (0, 1).
    n_random_subsets : int
        Size-matched random subsets per filtered subset, at least 1.
    n_agreement_bins, n_predictability_bins : int
        Bins of equal width over an agreement, and over a predictability, of 0 to 1, at least 1.
    seed : int
        Key of every draw.
    """

    n_bootstrap: int
    confidence: float
    n_random_subsets: int
    n_agreement_bins: int
    n_predictability_bins: int
    seed: int

    def __post_init__(self) -> None:
        for key in ("n_bootstrap", "n_random_subsets", "n_agreement_bins", "n_predictability_bins"):
            if getattr(self, key) < 1:
                raise UserError(f"{key}: {getattr(self, key)}; allowed: a whole number from 1; raise it")
        if not 0 < self.confidence < 1:
            raise UserError(f"confidence: {self.confidence}; allowed: above 0 and below 1, e.g. 0.95; change it")
