"""Playbook of failures: cause and remedy by the server's error texts and by category.

The texts are in `known_errors.toml`, each with an answer that a flow gave on Flowise 3.1.4, where almost every mistake
is HTTP 500 with the cause in the message. They are matched as plain texts: what comes back is not to be trusted.
"""

import re
import tomllib
from importlib.resources import files
from typing import Final

from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.schemas.verdict import Verdict, VerdictCategory
from flowise_dev_agent.texts import text

#: Prefixes of a status code in an error text.
_STATUS: Final = r"(?:^|- |: |status |status code |code |http ){}(?!\d)"
#: Causes are named at the beginning of a text.
_READ: Final = 8000


class Known(BaseModel):
    """Known cause of a failure: its category, and the texts by which it is known. The catalogue says what to do."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cause: str
    category: VerdictCategory
    texts: tuple[str | tuple[str, ...], ...]
    answer: str

    @property
    def advice(self) -> str:
        """Explanation and remedy."""
        return text(f"known_error.{self.cause}")

    def explains(self, error: str) -> bool:
        """True if a lower-case error text matches this cause."""
        return any(all(_holds(error, part) for part in ((one,) if isinstance(one, str) else one)) for one in self.texts)


def _holds(text: str, part: str) -> bool:
    return re.search(_STATUS.format(part), text) is not None if part.isdigit() else part in text


#: The first match counts. Causes outside the flow come first, since they explain other errors.
KNOWN: Final = tuple(
    Known.model_validate(entry)
    for entry in tomllib.loads((files("flowise_dev_agent.testing") / "known_errors.toml").read_text("utf-8"))["errors"]
)

#: How to fix each kind of failure; the planner reads it with the verdict.
PLAYBOOK: Final[dict[VerdictCategory, str]] = {
    "STRUCTURE": (
        "Compare the flow's connections with the node types' required inputs. Add the missing node or connection, or "
        "replace the wrong one; leave everything else as it is. One ending node, no cycle, no loose node."
    ),
    "LOGIC": (
        "Change only the prompt or parameter that the failed answers point at. Do not add nodes for what a sentence in "
        "the system prompt can do. Keep the variables of prompt templates."
    ),
    "INCOMPLETE": (
        "Find what the requirement names and the plan lacks; add exactly that with its connections, and a success "
        "criterion for it."
    ),
    "CREDENTIAL": "Nothing in the flow needs to change: keep the plan; the credential is for the person to correct.",
    "CONFIG": "Change the named value (model, address, tool) to one that exists on the server, if the plan can.",
    "UNKNOWN": "Nothing is proven wrong: keep the plan, and change only what the person asks for.",
    "EXTERNAL": "Nothing in the flow is wrong: keep the plan as it is.",
    "TIMEOUT": "Nothing is proven wrong: keep the plan; at most make the flow do less per question.",
}
#: Advice for the person, by category.
FIXES: Final[dict[VerdictCategory, str]] = {category: text(f"remedy.{category}") for category in PLAYBOOK}


def known(error: str) -> Known | None:
    """Known cause of an error text, if there is one."""
    read = error[:_READ].lower()
    return next((entry for entry in KNOWN if entry.explains(read)), None)


def advice(verdict: Verdict) -> str | None:
    """Advice for the next plan after a verdict; None if the verdict is positive."""
    if verdict.done or verdict.category is None:
        return None
    entry = known(verdict.reason)
    special = f"{entry.advice} " if entry and entry.category == verdict.category else ""
    return special + PLAYBOOK[verdict.category]
