"""Everything that the demo and the tests start on this machine: Postgres, Flowise and a stand-in for model providers.

Needs the `devkit` extra. Nothing here is imported by the service in production use.
"""
