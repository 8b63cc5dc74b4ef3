"""Questions on passages: from raw files in one of several formats to `questions` tables."""
