"""The passes of the pipeline: each completes a plan, or finds what is wrong with it."""
