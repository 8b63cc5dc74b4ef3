"""Adversarially constructed evaluation sets: build them, and measure whether they are fair."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["AFLite", "__version__"]


def __getattr__(name: str) -> object:
    """Import the estimator on first use: it needs torch, which most callers do not."""
    if name == "AFLite":
        from advsets.aflite.estimator import AFLite

        return AFLite
    raise AttributeError(f"module 'advsets' has no attribute {name!r}")
