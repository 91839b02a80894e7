"""Sessions of two usual kinds: a new flow by a form, for which no model is needed, and a change by a scripted model."""

from typing import Any, Final

from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.schemas.requests import StartSession

#: A plain assistant as a form describes it, for bodies of requests.
ASSISTANT: Final[dict[str, Any]] = {
    "name": "Customer support",
    "prompt": "You answer the questions of our customers in short, friendly sentences.",
    "model": "gpt-4o",
}
#: What a session of that form has as its requirement.
ASSISTANT_TEXT: Final = DesignForm.model_validate(ASSISTANT).as_text()


def new_flow(**request: Any) -> StartSession:
    """Start a session for a plain assistant."""
    return StartSession.model_validate({"design": ASSISTANT, **request})
