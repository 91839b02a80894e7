"""What a session will probably cost: the average of those that were like it."""

from flowise_dev_agent.contracts.usage import ExpectedCost, SessionKind
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.persistence.read_model import AVERAGE_COST
from flowise_dev_agent.runtime.agent import Agent


class ExpectedCosts:
    """Averages of the caller's owner."""

    def __init__(self, database: Database, agent: Agent) -> None:
        self._database = database
        self._agent = agent

    async def of(self, kind: SessionKind | None, model: str | None) -> ExpectedCost:
        """Of a session of this kind, or of any, with this model, or with the one of the settings."""
        planned_with = self._agent.planned_with(model)
        if planned_with is None:
            return ExpectedCost(free=True, sessions=0)
        row = await self._database.fetch_one(AVERAGE_COST, {"planned_with": planned_with, "mode": kind})
        return ExpectedCost(free=False, **row or {"sessions": 0})
