"""Files that people hand over are read in a process of their own and never believed."""

import base64
import io
import json
import zipfile
import zlib

import docx as docx_library
import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.knowledge import documents
from flowise_dev_agent.knowledge.documents import clean_name, read_apart, read_document
from flowise_dev_agent.patch.model.placeholders import placeholder_file
from flowise_dev_agent.schemas.attachments import MAX_ATTACHMENT_BYTES

API = """
openapi: 3.0.3
info: {title: Tickets, version: "1"}
servers: [{url: https://tickets.example.com/v1}]
paths:
  /tickets/{id}:
    get: {operationId: getTicket, parameters: [{name: id, in: path, required: true, schema: {type: integer}}]}
"""


def pdf(text: str) -> bytes:
    url = placeholder_file(".pdf", text) or ""
    return base64.b64decode(url.partition("base64,")[2].partition(",")[0])


async def test_a_pdf_is_read_with_its_pages_and_first_lines() -> None:
    found = await read_apart("handbook.pdf", pdf("Everybody has 31 days of leave."))

    assert (found.facts.kind, found.facts.pages, found.media_type) == ("pdf", 1, "application/pdf")
    assert found.facts.first_lines == "Everybody has 31 days of leave."
    assert found.text == "Everybody has 31 days of leave."


@pytest.mark.parametrize(
    ("name", "content", "kind", "found"),
    [
        ("a.md", b"# Leave\n31 days", "markdown", {"first_lines": "# Leave\n31 days"}),
        ("a.txt", "Füße".encode("utf-8-sig"), "text", {"first_lines": "Füße"}),
        ("a.csv", b"name;days\nAda;31\nGrace;30\n", "csv", {"rows": 2, "columns": ["name", "days"]}),
        ("a.yaml", API.encode(), "openapi", {"title": "Tickets", "operations": ["GET /tickets/{id}"]}),
        ("notes.txt", API.encode(), "openapi", {"title": "Tickets"}),
    ],
)
def test_each_kind_of_file_gives_its_facts(name: str, content: bytes, kind: str, found: dict[str, object]) -> None:
    facts = read_document(name, content).facts.model_dump()

    assert facts["kind"] == kind
    assert {key: facts[key] for key in found} == found


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.pdf", b"", "is empty"),
        ("a.pdf", b"x" * (MAX_ATTACHMENT_BYTES + 1), "more than 20 MB"),
        ("a.gif", b"GIF89a\x00\xff", "Files of this kind are not taken"),
        ("a.txt", b" \n ", "holds no text"),
        ("a.pdf", pdf(""), "holds no text: it may be a scan"),
        ("a.pdf", b"%PDF-1.4 nothing of a document", "cannot be read"),
        ("a.json", b'{"swagger": "2.0"}', "not an OpenAPI 3 description"),
        ("a.json", b'{"openapi": "3.0.0", "paths": {}}', "has no operations"),
        ("a.json", b'{"openapi": ', "cannot be read"),
    ],
)
async def test_an_unusable_file_is_refused(name: str, content: bytes, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        await read_apart(name, content)


def docx(*paragraphs: str, table: list[list[str]] | None = None) -> bytes:
    document = docx_library.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if table:
        made = document.add_table(rows=len(table), cols=len(table[0]))
        for row, cells in zip(made.rows, table, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def packed(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return stream.getvalue()


async def test_a_docx_is_read_with_its_tables_in_order() -> None:
    found = await read_apart("leave.docx", docx("Leave", table=[["Office", "Days"], ["Zurich", "31"]]))

    assert (found.facts.kind, found.text) == ("docx", "Leave\nOffice | Days\nZurich | 31")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (docx(), "holds no text"),
        (packed(**{"other.xml": b"<x/>"}), "Files of this kind are not taken"),
        (packed(**{"word__document.xml": b" " * (101 * 1024**2)}), "more than 100 MB unpacked"),
        (b"PK\x03\x04 nothing of an archive", "damaged"),
    ],
    ids=["empty", "zip", "bomb", "damaged"],
)
async def test_an_unusable_docx_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        await read_apart("a.docx", content)


def test_a_csv_with_questions_and_what_is_expected_is_a_test_set() -> None:
    tests = read_document("t.csv", b"no;Question;Expected\n1;How many days?;31 days\n2;;x\n3;Hello?;\n").facts.tests
    faq = read_document("faq.csv", b"question;answer\nHow many days?;31 days\n").facts.tests

    assert tests == [("How many days?", "31 days"), ("Hello?", "")]
    assert faq == []


async def test_a_pdf_that_unpacks_to_gigabytes_is_refused_and_the_service_lives() -> None:
    packed = zlib.compress(b"\x00" * 50_000_000, 9)
    for _ in range(2):
        packed = zlib.compress(packed * 40, 9)
    head = b"<< /Length %d /Filter [/FlateDecode /FlateDecode /FlateDecode] >>\nstream\n" % len(packed)
    bomb = pdf("x").replace(b"<< /Length", b"<< /Old", 1)
    start = bomb.index(b"<< /Old")
    end = bomb.index(b"endstream")
    bomb = bomb[:start] + head + packed + b"\n" + bomb[end:]

    with pytest.raises(InvalidInputError):
        await read_apart("bomb.pdf", bomb)


async def test_a_file_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_SECONDS", 0.01)

    with pytest.raises(InvalidInputError, match="cannot be read within"):
        await read_apart("a.txt", b"text")


def test_a_yaml_file_that_multiplies_itself_is_refused() -> None:
    lines = ["openapi: 3.0.0", "a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]

    with pytest.raises(InvalidInputError, match="has no operations"):
        read_document("a.yaml", "\n".join(lines).encode())


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("../../etc/passwd", "passwd.txt"),
        ("C:\\files\\Hand book.PDF", "Hand book.pdf"),
        ("a,filename:b].pdf", "a_filename_b_.pdf"),
        ("", "file.txt"),
    ],
)
def test_a_name_keeps_only_what_a_flow_can_hold(given: str, clean: str) -> None:
    assert clean_name(given) == clean


def test_facts_hold_no_more_than_the_beginning() -> None:
    facts = read_document("a.txt", ("word " * 100_000).encode()).facts

    assert len(json.dumps(facts.model_dump())) < 1_500
