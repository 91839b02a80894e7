"""Patch IR, compiler and validator: everything that is known about the inside of a Flowise flow. Pure, no I/O."""
