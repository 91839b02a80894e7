"""Attached files, new document stores and new custom tools in node fields.

Plans and ops hold marks with names; stored flows hold the content, or the id of the store or tool.

>>> mark(["handbook.pdf", "rules.pdf"])
'[ATTACHMENT: handbook.pdf; rules.pdf]'
>>> file_names(mark(["a.pdf"])), file_names('FILE-STORAGE::["a.pdf"]'), file_names("a.pdf")
(('a.pdf',), ('a.pdf',), ())
>>> store_mark("Handbook"), new_store("[NEW STORE: Handbook]"), new_store("Handbook")
('[NEW STORE: Handbook]', 'Handbook', None)
>>> more_for("[ADD TO STORE: Handbook]"), more_for("[NEW STORE: Handbook]")
('Handbook', None)
>>> tool_mark("miles_to_km"), with_marked({"tools": [{"id": tool_mark("a")}]}, {"[NEW TOOL: a]": "7"})
('[NEW TOOL: miles_to_km]', {'tools': [{'id': '7'}]})
"""

import base64
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

_MARK: Final = "[ATTACHMENT: "
_STORED: Final = "FILE-STORAGE::"
_URL_NAME: Final = ",filename:"
_MARKED: Final = re.compile(r"\[ATTACHMENT: ([^\[\]\n]{1,1200})\]")
#: The node types that take a document store, and their field.
STORE_NODES: Final = frozenset({"documentStore", "documentStoreVS"})
STORE_FIELD: Final = "selectedStore"
#: Vector stores that a flow does not fill: documentStoreVS is filled elsewhere, memoryVectorStore at each question.
_NOT_FILLED: Final = frozenset({"documentStoreVS", "memoryVectorStore"})
_NEW_STORE: Final = re.compile(r"\[NEW STORE: ([^\[\]\n]{1,120})\]")
_MORE: Final = re.compile(r"\[ADD TO STORE: ([^\[\]\n]{1,120})\]")
_STAND_INS: Final = uuid.UUID("0b1f5a8e-1d5a-5b67-9b0f-6f0c3f5d7e21")
_STAND_IN: Final = "57a4d170-57e5-"


def mark(names: Sequence[str]) -> str:
    """Placeholder for these files in plans and ops."""
    return f"{_MARK}{'; '.join(names)}]"


def is_mark(value: object) -> bool:
    """True if a value of a plan or an op names files of the session."""
    return isinstance(value, str) and _MARKED.fullmatch(value) is not None


def file_names(value: object) -> tuple[str, ...]:
    """Names of the files that a field holds, in any of its forms; empty if it holds something else."""
    if not isinstance(value, str):
        return ()
    if found := _MARKED.fullmatch(value):
        return tuple(name.strip() for name in found[1].split(";"))
    if not value.startswith((_STORED, "data:", '["data:')):
        return ()
    text = value.removeprefix(_STORED)
    urls: Any = [text]
    if text.startswith("["):
        with suppress(ValueError):
            urls = json.loads(text)
    return tuple(str(url).rpartition(_URL_NAME)[2] for url in urls)


def file_value(files: Sequence[tuple[str, str, bytes]]) -> str:
    """Encode files (name, media type, content) for Flowise's file fields: a data URL, or a JSON list of several."""
    urls = [
        f"data:{media_type};base64,{base64.b64encode(content).decode()}{_URL_NAME}{name}"
        for name, media_type, content in files
    ]
    return urls[0] if len(urls) == 1 else json.dumps(urls)


def with_files(values: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """The values with each mark replaced by its content; `files` maps mark to value."""
    return {name: files.get(value, value) if isinstance(value, str) else value for name, value in values.items()}


def is_filled(vector_store: str) -> bool:
    """True if documents must be upserted into a vector store of this type before a flow finds them."""
    return vector_store not in _NOT_FILLED


def store_mark(name: str) -> str:
    """Placeholder in plans and ops for the id of a store that is created with the flow."""
    words = re.split(r"[\[\]\s]+", name)
    return f"[NEW STORE: {' '.join(words).strip()}]"


def new_store(value: object) -> str | None:
    """The name of the new store in a store mark; None if the value is none."""
    found = _NEW_STORE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


def more_for(value: object) -> str | None:
    """The name or id of an existing store that gets the user's files, if a plan says so."""
    found = _MORE.fullmatch(value) if isinstance(value, str) else None
    return found[1].strip() if found else None


def tool_mark(name: str) -> str:
    """Placeholder in plans and ops for the id of a custom tool that is created with the flow."""
    return f"[NEW TOOL: {name}]"


def with_marked(value: Any, ids: Mapping[str, str]) -> Any:
    """The value with each mark of `ids` (mark -> id) replaced, wherever it stands."""
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, Mapping):
        return {key: with_marked(item, ids) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [with_marked(item, ids) for item in cast("list[Any]", value)]
    return value


def stand_in_id(mark: str) -> str:
    """A valid id for checks before the store or tool of a mark exists; never written to Flowise."""
    return f"{_STAND_IN}{str(uuid.uuid5(_STAND_INS, mark))[len(_STAND_IN) :]}"


def is_stand_in(id_: str) -> bool:
    """True for the id of a store or tool that a session makes before it writes the flow."""
    return id_.startswith(_STAND_IN)
