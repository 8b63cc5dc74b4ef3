"""Figures of a run: tables in, PDF, PNG and CSV out. One module per figure, each with `draw`."""
