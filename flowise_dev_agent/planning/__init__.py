"""Planning: from a requirement to a plan that a person can approve."""
