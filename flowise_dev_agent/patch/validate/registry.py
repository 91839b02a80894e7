"""The list of rules. A rule is a generator over the flow; the decorator says which codes it can raise."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flowise_dev_agent.patch.model.findings import Finding
from flowise_dev_agent.patch.validate.context import FlowContext

Check = Callable[[FlowContext], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One check and the codes of its findings."""

    codes: tuple[str, ...]
    check: Check
    kinds: tuple[str, ...]


RULES: list[Rule] = []


CHATFLOW = "CHATFLOW"
AGENTFLOW = "AGENTFLOW"


def rule(*codes: str, kinds: tuple[str, ...] = (CHATFLOW, AGENTFLOW)) -> Callable[[Check], Check]:
    """Register a check under the codes that it raises, for the types of flow in which it makes sense."""

    def register(check: Check) -> Check:
        RULES.append(Rule(codes, check, kinds))
        return check

    return register
