"""Testing: conversations with a flow, what they showed, and the verdict."""
