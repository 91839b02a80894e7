"""Designs: a flow described part by part instead of in words."""

from typing import Any, cast

from flowise_dev_agent.api.responses import declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.designs import DesignForm
from flowise_dev_agent.texts import Text

router = Routes(prefix="/designs", tags=["sessions"])


@router.get("/schema", responses=declared())
async def get_design_schema() -> JsonObject:
    """The JSON Schema of `design` in `POST /sessions`, for forms. `x-texts`: the codes of its texts."""
    return _with_codes(DesignForm.model_json_schema())


def _with_codes(schema: Any) -> Any:
    """A schema with the codes of its texts beside them."""
    if isinstance(schema, list):
        return [_with_codes(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    named = cast("dict[str, Any]", schema)
    codes = {name: value.code for name, value in named.items() if isinstance(value, Text)}
    return {name: _with_codes(value) for name, value in named.items()} | ({"x-texts": codes} if codes else {})
