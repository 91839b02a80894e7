"""A design as a person reads it and as ops."""
