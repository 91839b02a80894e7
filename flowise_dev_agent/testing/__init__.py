"""Testing: conversations with a flow, their traces, and the verdict."""
