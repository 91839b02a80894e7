"""The command line: `flowise-dev-agent`."""

from flowise_dev_agent.cli.main import main

__all__ = ["main"]
