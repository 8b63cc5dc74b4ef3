"""Data sets: from a row of the data sets table, over raw files, to `examples` tables."""
