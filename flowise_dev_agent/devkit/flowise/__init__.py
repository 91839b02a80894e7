"""A real Flowise on this machine: installed from a committed lock file, started, given an account and an API key."""

from flowise_dev_agent.devkit.flowise.account import FlowiseAccess
from flowise_dev_agent.devkit.flowise.install import FLOWISE_VERSION, FlowiseInstallation
from flowise_dev_agent.devkit.flowise.server import LocalFlowise

__all__ = ["FLOWISE_VERSION", "FlowiseAccess", "FlowiseInstallation", "LocalFlowise"]
