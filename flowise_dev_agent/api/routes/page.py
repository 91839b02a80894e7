"""The page and its files: static, public, without a trace of any session."""

import os
import re
from typing import Final

from fastapi import FastAPI, Request
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.web import STATIC_DIR

_NOT_BUILT: Final = """The page is not built yet. In the checkout, run:  make web
(or: python scripts/build_page.py), then start the service again.
The REST API works without it; its description is at /openapi.json.
"""

#: How the build has compressed each file, best first: name of the coding, ending of the file.
_CODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
_REFUSED: Final = re.compile(r";\s*q=0(\.0*)?\s*$")

router = Routes(include_in_schema=False)


class _BuiltFiles(StaticFiles):
    """The files of the build, compressed once. In `assets/` names carry a hash of the content: a browser may keep
    them for good."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        asked = Headers(scope=scope).get("accept-encoding", "").split(",")
        accepted = {one.partition(";")[0].strip() for one in asked if not _REFUSED.search(one)}
        for coding, ending in _CODINGS:
            packed = f"{full_path}{ending}"
            if coding in accepted and os.path.isfile(packed):
                response = super().file_response(packed, os.stat(packed), scope, status_code)
                response.headers["Content-Encoding"] = coding
                break
        else:
            response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Vary"] = "Accept-Encoding"
        if scope["path"].startswith("/assets/"):
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


_files: Final = _BuiltFiles(directory=STATIC_DIR, check_dir=False)


@router.get("/")
async def page(request: Request) -> Response:
    """Start and steer sessions."""
    if not (STATIC_DIR / "index.html").is_file():
        return PlainTextResponse(_NOT_BUILT, status_code=503)
    return await _files.get_response("index.html", request.scope)


@router.get("/docs")
async def docs() -> RedirectResponse:
    """The API's reference, drawn by the page from `/openapi.json`."""
    return RedirectResponse("./#/api", status_code=307)


def mount_files(app: FastAPI) -> None:
    """Serve the page's files, where it has been built."""
    assets = STATIC_DIR / "assets"
    if assets.is_dir():
        app.mount("/assets", _BuiltFiles(directory=assets), name="assets")
