"""What operators look at and look after: health, instances, knowledge, patterns."""
