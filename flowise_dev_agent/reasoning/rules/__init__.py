"""Building without a model: a requirement is read once into a design, which is rendered as a plan and as ops.

`reasoner` answers the questions; `process` has them answered behind a deadline and is what a service imports.
"""
