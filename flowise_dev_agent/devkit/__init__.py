"""Local services for the demo and the tests: Postgres, Flowise and a stand-in for model providers.

Needs the `devkit` extra. The service imports nothing of it in production.
"""
