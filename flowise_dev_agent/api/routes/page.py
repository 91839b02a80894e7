"""The page and its files: static, public, without a trace of any session."""

from fastapi import APIRouter
from starlette.responses import FileResponse

from flowise_dev_agent.web import STATIC_DIR

router = APIRouter(include_in_schema=False)


@router.get("/")
async def page() -> FileResponse:
    """Start and steer sessions."""
    return FileResponse(STATIC_DIR / "index.html")


@router.get("/docs")
async def docs() -> FileResponse:
    """The API's reference, drawn from `/openapi.json`."""
    return FileResponse(STATIC_DIR / "docs.html")
