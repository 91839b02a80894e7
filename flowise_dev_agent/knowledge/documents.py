"""Reads an uploaded file: its kind, its text, and the facts for a plan.

Files are untrusted: each is read in a separate process (`python -m flowise_dev_agent.knowledge.documents NAME`, the
file on stdin, JSON on stdout) with limits of memory, time and text.
"""

import asyncio
import csv
import io
import json
import re
import struct
import sys
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import BytesIO
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.knowledge.openapi import is_openapi, read_openapi
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.attachments import (
    MAX_ATTACHMENT_BYTES,
    MAX_IMAGE_BYTES,
    MAX_IMAGE_PIXELS,
    AttachmentFacts,
    AttachmentKind,
)
from flowise_dev_agent.schemas.base import TextCode, kept
from flowise_dev_agent.texts import text as said

_PNG: Final = b"\x89PNG\r\n\x1a\n"


_JPEG: Final = b"\xff\xd8\xff"


def image_type(content: bytes) -> str | None:
    """The media type of a PNG, JPEG or WebP; None for other files."""
    if content.startswith(_PNG):
        return "image/png"
    if content.startswith(_JPEG):
        return "image/jpeg"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def image_size(content: bytes) -> tuple[int, int]:
    """Width and height. Raises InvalidInputError: damaged or cut off, too large, or with too many pixels."""
    import imagesize  # lazy: loads code that a service without images does not need

    if len(content) > MAX_IMAGE_BYTES:
        raise InvalidInputError(
            said("error.image_too_large", mb=MAX_IMAGE_BYTES // 1024**2), hint=said("error.make_it_smaller")
        )
    width, height = imagesize.get(BytesIO(content))
    if width < 1 or height < 1 or not _is_whole(content):
        raise InvalidInputError(said("error.image_damaged"))
    if width * height > MAX_IMAGE_PIXELS:
        raise InvalidInputError(
            said("error.image_pixels", width=width, height=height, limit=MAX_IMAGE_PIXELS // 1_000_000),
            hint=said("error.make_it_smaller"),
        )
    return width, height


def _is_whole(content: bytes) -> bool:
    """True if the end of the file is present, which its header says nothing about."""
    if content.startswith(_PNG):
        return content[-12:-4] == b"\0\0\0\0IEND"
    if content.startswith(_JPEG):
        return b"\xff\xd9" in content[-64:]
    return struct.unpack("<I", content[4:8])[0] + 8 <= len(content)


#: Maximum length of the stored text.
MAX_TEXT: Final = 400_000
_FIRST_LINES: Final = 600
_PAGES_READ: Final = 300
_SECONDS: Final = 30.0
_MEMORY: Final = 1024**3
_COLUMNS_SHOWN: Final = 40
#: Limits of a ZIP, which a DOCX is: declared unpacked bytes, and number of files.
_UNPACKED: Final = 100 * 1024**2
_ENTRIES: Final = 5_000
#: Column heads of a test set.
_QUESTIONS: Final = ("question", "frage", "pregunta")
_EXPECTED: Final = ("expected", "expected answer", "expected_answer", "erwartet", "attendu", "esperado")
_TESTS_SHOWN: Final = 10
#: Column heads of examples for a prompt.
_INPUTS: Final = ("input", "eingabe", "entrée", "entree", "entrada", "example", "beispiel", "exemple", "ejemplo")
_OUTPUTS: Final = ("output", "ausgabe", "sortie", "salida", "label", "result", "ergebnis", "résultat", "resultado")
_EXAMPLES_SHOWN: Final = 20
_EXAMPLE: Final = re.compile(
    rf"^\W*(?:{'|'.join(_INPUTS)})\W*:\W*(\S.*?)\n\W*(?:{'|'.join(_OUTPUTS)})\W*:[*_ ]*(\S.*?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_CELL: Final = 1_000
_OPERATIONS_SHOWN: Final = 60
_MEDIA_TYPES: Final[dict[AttachmentKind, str]] = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "text": "text/plain",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "openapi": "application/yaml",
}
_TAKEN: Final = "PDF, DOCX, plain text, Markdown, CSV, OpenAPI 3 as JSON or YAML, and PNG, JPEG and WebP images"


class Document(BaseModel):
    """The result of reading a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    facts: AttachmentFacts
    media_type: str
    text: str


def clean_name(name: str) -> str:
    """A file name without folders and without what Flowise's file fields cannot hold.

    >>> clean_name("../our handbook, v2.PDF")
    'our handbook_ v2.pdf'
    """
    base = re.split(r"[/\\]", name)[-1].strip()
    stem, dot, ending = base.rpartition(".")
    stem, ending = (stem, ending.lower()) if dot else (base, "txt")
    stem = re.sub(r"[^\w .()-]", "_", stem).strip(" .")[:90]
    ending = re.sub(r"\W", "", ending)[:9]
    return f"{stem or 'file'}.{ending or 'txt'}"


async def read_apart(name: str, content: bytes) -> Document:
    """Read a file in a separate process.

    Raises InvalidInputError: empty, too large, of another kind, without text, or not readable within the ceilings.
    """
    if not content:
        raise InvalidInputError(said("error.file_empty", name=name))
    if len(content) > MAX_ATTACHMENT_BYTES:
        raise InvalidInputError(said("error.file_large", name=name, mb=MAX_ATTACHMENT_BYTES // 1024**2))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            output, _ = await process.communicate(content)
    except TimeoutError:
        raise InvalidInputError(said("error.file_slow", name=name, seconds=f"{_SECONDS:g}")) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        answer = json.loads(output)
    except ValueError:
        raise InvalidInputError(said("error.file_unreadable", name=name)) from None
    if "error" in answer:
        problem, hint = (TextCode.model_validate(answer[part]).words for part in ("error", "hint"))
        raise InvalidInputError(said("error.in_file", name=name, problem=problem), hint=hint or None)
    return Document.model_validate(answer)


def read_document(name: str, content: bytes) -> Document:
    """Read a file in this process. Raises InvalidInputError; a damaged file may raise anything."""
    if content.startswith(b"%PDF-"):
        text, pages = _pdf(content)
        return _document("pdf", name, content, text, pages=pages)
    if content.startswith(b"PK\x03\x04"):
        return _document("docx", name, content, _docx(content))
    if media_type := image_type(content):
        facts = AttachmentFacts(name=name, kind="image", size=len(content), pixels=image_size(content))
        return Document(facts=facts, media_type=media_type, text="")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\x00"
    if "\x00" in text:
        raise InvalidInputError(said("error.file_kind"), hint=said("error.file_kinds_utf8", kinds=_TAKEN))
    if not text.strip():
        raise InvalidInputError(said("error.file_no_text"))
    ending = name.rpartition(".")[2].lower()
    if ending in ("json", "yaml", "yml") or is_openapi(text):
        api = read_openapi(text)
        return _document(
            "openapi", name, content, text, title=api.title, operations=[one.title for one in api.operations]
        )
    if ending == "csv":
        rows = list(_rows(text))
        columns = [shortened(cell, 60) for cell in rows[0][:_COLUMNS_SHOWN]] if rows else []
        return _document(
            "csv",
            name,
            content,
            text,
            rows=max(0, len(rows) - 1),
            columns=columns,
            tests=_pairs(rows, columns, _QUESTIONS, _EXPECTED)[:_TESTS_SHOWN],
            examples=_pairs(rows, columns, _INPUTS, _OUTPUTS)[:_EXAMPLES_SHOWN],
        )
    found = [(given[:_CELL], wanted[:_CELL]) for given, wanted in _EXAMPLE.findall(text)][:_EXAMPLES_SHOWN]
    return _document("markdown" if ending in ("md", "markdown") else "text", name, content, text, examples=found)


def _document(kind: AttachmentKind, name: str, content: bytes, text: str, **found: Any) -> Document:
    first = shortened(text[: _FIRST_LINES * 4].strip(), _FIRST_LINES)
    facts = AttachmentFacts(name=name, kind=kind, size=len(content), first_lines=first, **found)
    facts = facts.model_copy(update={"operations": facts.operations[:_OPERATIONS_SHOWN]})
    return Document(facts=facts, media_type=_MEDIA_TYPES[kind], text=text.replace("\x00", "")[:MAX_TEXT])


def _rows(text: str) -> list[list[str]]:
    csv.field_size_limit(1_000_000)
    try:
        dialect = csv.Sniffer().sniff(text[:4_000], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        return [row for row in csv.reader(io.StringIO(text), dialect) if row]
    except csv.Error as error:
        raise InvalidInputError(said("error.csv_unreadable", problem=str(error))) from None


def _pairs(
    rows: list[list[str]], columns: list[str], first: Sequence[str], second: Sequence[str]
) -> list[tuple[str, str]]:
    """Both cells of each row, if two columns have one of these names."""
    names = [column.strip().casefold() for column in columns]
    asked = next((names.index(name) for name in first if name in names), None)
    wanted = next((names.index(name) for name in second if name in names), None)
    if asked is None or wanted is None:
        return []
    pairs = [
        (row[asked].strip()[:_CELL], row[wanted].strip()[:_CELL]) for row in rows[1:] if len(row) > max(asked, wanted)
    ]
    return [(question, expected) for question, expected in pairs if question]


def _docx(content: bytes) -> str:
    """Paragraphs and table cells in document order. Raises InvalidInputError for an invalid DOCX or a zip bomb."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(item.file_size for item in archive.infolist())
            names = set(archive.namelist())
    except zipfile.BadZipFile:
        raise InvalidInputError(said("error.file_damaged")) from None
    if "word/document.xml" not in names:
        raise InvalidInputError(said("error.file_kind"), hint=said("error.file_kinds", kinds=_TAKEN))
    if unpacked > _UNPACKED or len(names) > _ENTRIES:
        raise InvalidInputError(said("error.file_unpacked", mb=_UNPACKED // 1024**2))
    # Imported by name and only here: nothing else in the service needs it.
    document: Any = import_module("docx").Document(io.BytesIO(content))
    lines: list[str] = []
    for block in document.iter_inner_content():
        rows: Any = getattr(block, "rows", None)
        lines += [block.text] if rows is None else [" | ".join(cell.text for cell in row.cells) for row in rows]
    text = "\n".join(lines).strip()
    if not text:
        raise InvalidInputError(said("error.file_no_text"))
    return text


def _pdf(content: bytes) -> tuple[str, int]:
    """(text, pages). Raises InvalidInputError for a PDF with a password or without text."""
    # Imported by name and only here: nothing else in the service needs it.
    reader: Any = import_module("pypdf").PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidInputError(said("error.pdf_password"), hint=said("error.pdf_password_hint"))
    pages = len(reader.pages)
    texts: list[str] = []
    size = 0
    for page in reader.pages[:_PAGES_READ]:
        texts.append(page.extract_text())
        size += len(texts[-1])
        if size > MAX_TEXT:
            break
    text = "\n\n".join(texts).strip()
    if not text:
        raise InvalidInputError(said("error.pdf_scan"), hint=said("error.pdf_scan_hint"))
    return text.encode("utf-8", "replace").decode(), pages


def _failed(problem: str, hint: str = "") -> str:
    return json.dumps({"error": kept(problem).model_dump(), "hint": kept(hint).model_dump()})


def _main() -> int:
    with suppress(ImportError, ValueError, OSError):
        resource: Any = import_module("resource")  # not on Windows
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(_SECONDS), int(_SECONDS)))
    try:
        answer = read_document(sys.argv[1], sys.stdin.buffer.read()).model_dump_json()
    except InvalidInputError as error:
        answer = _failed(error.message, error.hint or "")
    except (Exception, MemoryError) as error:  # noqa: BLE001 - whatever a hostile file makes a parser raise
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        answer = _failed(said("error.file_maybe_damaged"))
    print(answer)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
