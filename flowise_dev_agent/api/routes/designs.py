"""Designs: a flow described part by part instead of in words."""

from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.designs import DesignForm

router = Routes(prefix="/designs", tags=["sessions"])


@router.get("/schema", responses=declared())
async def get_design_schema() -> JsonObject:
    """The JSON Schema of `design` in `POST /sessions`, for forms."""
    return DesignForm.model_json_schema()
