"""What can go wrong between a client and the service, in the service's own words."""

from typing import Any

from flowise_dev_agent.errors import AgentError


class ServiceError(AgentError):
    """The service answered with a problem. `problem_code` is its stable code, `status` the HTTP status."""

    code = "service_error"

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(
            str(problem.get("detail") or f"The service answered {status}."),
            hint=problem.get("hint"),
            details=problem.get("details"),
        )
        self.status = status
        self.problem_code = str(problem.get("code", "http_error"))

    def as_problem(self) -> dict[str, Any]:
        """As the service said it."""
        return super().as_problem() | {"code": self.problem_code}


class ServiceUnreachableError(AgentError):
    """No service answers at this address."""

    code = "service_unreachable"
    transient = True
