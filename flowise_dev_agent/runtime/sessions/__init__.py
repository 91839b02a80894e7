"""Sessions as clients see them: start, answer, read, list, stream."""
