"""Extractive question answering: windows of passages, spans as answers."""
