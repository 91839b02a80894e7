"""Placeholders for missing input: marked texts, and small files that hold one."""

import base64
import json
import zipfile
from io import BytesIO

#: Prefix of a placeholder, in flows and in plans.
MARK = "[PLACEHOLDER"
_TYPES = {
    ".pdf": "application/pdf",
    ".csv": "text/csv",
    ".txt": "text/plain",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def stands_in(value: object) -> bool:
    """True if a field's value is a placeholder that the user has to replace."""
    return isinstance(value, str) and (value.startswith(MARK) or value.endswith(",filename:" + _file_name(value)))


def placeholder_file(endings: str, text: str) -> str | None:
    """A data URL for Flowise's file fields, of the first supported ending in ``endings`` (".pdf" or ".jpg, .txt").

    The same text gives the same bytes; None if no ending is supported.
    """
    for ending in (part.strip().lower() for part in (endings or ".txt").split(",")):
        if ending == "*":
            ending = ".txt"
        if ending in _TYPES:
            body = base64.b64encode(_content(ending, text)).decode()
            return f"data:{_TYPES[ending]};base64,{body},filename:placeholder{ending}"
    return None


def _file_name(value: str) -> str:
    name = value.rpartition(",filename:")[2]
    return name if value.startswith("data:") and name.startswith("placeholder.") else "\0"


def _content(ending: str, text: str) -> bytes:
    match ending:
        case ".pdf":
            return _pdf(text)
        case ".csv":
            return f'text\n"{text}"\n'.encode()
        case ".json":
            return json.dumps([{"text": text}], ensure_ascii=False).encode()
        case ".jsonl":
            return (json.dumps({"text": text}, ensure_ascii=False) + "\n").encode()
        case ".docx":
            return _docx(text)
        case ".xlsx":
            return _xlsx(text)
        case _:
            return text.encode()


def _pdf(text: str) -> bytes:
    """One page with one line of text."""
    plain = text.encode("latin-1", "replace").translate(None, b"()\\")
    stream = b"BT /F1 12 Tf 40 780 Td (" + plain + b") Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    document, offsets = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, start=1):
        offsets.append(len(document))
        document += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        document
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (
            size,
            table,
            size,
            len(document),
        )
    )


def _docx(text: str) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = f"<w:p><w:r><w:t>{_escaped(text)}</w:t></w:r></w:p>"
    return _package(
        {"word/document.xml": f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'},
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    )


def _xlsx(text: str) -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    cells = "".join(f'<row><c t="inlineStr"><is><t>{_escaped(line)}</t></is></c></row>' for line in ("text", text))
    sheet_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
    return _package(
        {
            "xl/workbook.xml": f'<workbook xmlns="{space}" xmlns:r="{_OFFICE}"><sheets>'
            '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{space}"><sheetData>{cells}</sheetData></worksheet>',
        },
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
        {"/xl/worksheets/sheet1.xml": sheet_type},
    )


def _package(parts: dict[str, str], main_type: str, more_types: dict[str, str] | None = None) -> bytes:
    """An Office file of ``parts``; the first is the main part."""
    main = next(iter(parts))
    types = {f"/{main}": main_type, **(more_types or {})}
    overrides = "".join(f'<Override PartName="{name}" ContentType="{type_}"/>' for name, type_ in types.items())
    relations = "application/vnd.openxmlformats-package.relationships+xml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="{relations}"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{overrides}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="{main}"/></Relationships>',
        **parts,
    }
    target = BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), _XML + content)
    return target.getvalue()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
