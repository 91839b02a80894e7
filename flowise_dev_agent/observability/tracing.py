"""LangSmith tracing. LangGraph instruments itself; what is traced, and to whom, is set here, not in the environment."""

from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.settings import TracingSettings


def configure_tracing(settings: TracingSettings) -> bool:
    """Turn tracing on or off for this process; True when it is on. Secrets are masked before anything is sent.

    The environment variables that the library reads by itself have no effect afterwards.
    """
    # Takes a while to import; commands that ask a service never trace.
    import langsmith

    if settings.key is None:
        langsmith.configure(enabled=False)
        return False
    client = langsmith.Client(
        api_url=str(settings.endpoint).rstrip("/"), api_key=settings.key.get_secret_value(), anonymizer=redacted
    )
    langsmith.configure(client=client, enabled=True, project_name=settings.project)
    return True
