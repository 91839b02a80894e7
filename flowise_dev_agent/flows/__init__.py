"""Flows as people look at them: found by words, drawn, compared, and talked to."""
