"""The HTTP service: routes over the runtime's session service, problem details, event streams, the page."""

from flowise_dev_agent.api.app import create_app, create_worker_app

__all__ = ["create_app", "create_worker_app"]
