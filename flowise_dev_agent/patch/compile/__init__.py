"""Compiler from ops to flowData, and back."""
