"""Scores on sets that people wrote against a model in the loop."""
