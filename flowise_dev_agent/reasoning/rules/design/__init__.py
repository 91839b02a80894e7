"""From words to a design: what is said, which nodes it takes, with which values."""
