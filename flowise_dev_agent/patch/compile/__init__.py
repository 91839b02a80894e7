"""Ops to flowData and back."""
