"""LangSmith tracing. LangGraph instruments itself and reads these variables from the environment."""

import os

from flowise_dev_agent.settings import TracingSettings


def configure_tracing(settings: TracingSettings) -> bool:
    """Turn tracing on when a key is set, in the environment or in `.env`; True when it is on.

    Without a key it is off even if LANGCHAIN_TRACING_V2 is set: each run would try to send and fail.
    """
    if settings.langchain_api_key is None:
        os.environ.pop("LANGCHAIN_TRACING_V2", None)
        return False
    os.environ["LANGCHAIN_API_KEY"] = settings.langchain_api_key.get_secret_value()
    os.environ["LANGCHAIN_TRACING_V2"] = "true"
    os.environ["LANGCHAIN_PROJECT"] = settings.langchain_project
    if settings.langchain_endpoint:
        os.environ["LANGCHAIN_ENDPOINT"] = settings.langchain_endpoint
    return True
