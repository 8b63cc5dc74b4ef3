"""A filtered evaluation set as a folder in the Hugging Face hub's format, with its card."""
