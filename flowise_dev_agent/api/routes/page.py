"""The page and its files: static, public, without a trace of any session."""

import os
from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from flowise_dev_agent.web import STATIC_DIR

_NOT_BUILT: Final = """The page is not built yet. In the checkout, run:  make web
(or: python scripts/build_page.py), then start the service again.
The REST API works without it; its description is at /openapi.json.
"""

router = APIRouter(include_in_schema=False)


@router.get("/")
async def page() -> Response:
    """Start and steer sessions."""
    index = STATIC_DIR / "index.html"
    return FileResponse(index) if index.is_file() else PlainTextResponse(_NOT_BUILT, status_code=503)


@router.get("/docs")
async def docs() -> RedirectResponse:
    """The API's reference, drawn by the page from `/openapi.json`."""
    return RedirectResponse("/#/api", status_code=307)


class _BuiltFiles(StaticFiles):
    """Files whose names carry a hash of their content: a browser may keep them for good."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def mount_files(app: FastAPI) -> None:
    """Serve the page's files, where it has been built."""
    assets = STATIC_DIR / "assets"
    if assets.is_dir():
        app.mount("/assets", GZipMiddleware(_BuiltFiles(directory=assets)), name="assets")
