"""For operators: health, instances, knowledge, patterns."""
