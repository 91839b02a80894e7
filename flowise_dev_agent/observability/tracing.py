"""LangSmith tracing, configured here and not by the environment. LangGraph instruments itself."""

from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.settings import TracingSettings


def configure_tracing(settings: TracingSettings) -> bool:
    """Turn tracing on or off for this process; returns True if it is on. Secrets are masked before sending.

    The environment variables that the library reads by itself have no effect afterwards.
    """
    # The import is slow, and commands that only call a service never trace.
    import langsmith

    if settings.key is None:
        langsmith.configure(enabled=False)
        return False
    client = langsmith.Client(
        api_url=str(settings.endpoint).rstrip("/"), api_key=settings.key.get_secret_value(), anonymizer=redacted
    )
    langsmith.configure(client=client, enabled=True, project_name=settings.project)
    return True
