"""Kinds of fields whose values act: code, commands, addresses, files of the server, secrets, parts of requests.

One table of the names that node types give them, and one of names that mean something else in a type. A test compares
them with the catalogue: a new field whose name looks like one of these is classified, or stands among the plain ones. A
field of an unknown type goes by the words of its name.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, cast

from flowise_dev_agent.patch.model.flow_data import InputEntry


class FieldKind(StrEnum):
    """Effect of a field's value."""

    CODE = "code"
    COMMAND = "command"
    ADDRESS = "address"
    FILE = "file"
    SECRET = "secret"  # noqa: S105 - a kind of field
    REQUEST = "request"
    PLAIN = "plain"


#: Prompt fields, which hold the person's text unchanged: only the model carries it out.
PROSE: Final = re.compile(
    r"(prompt|(?<!reply)(?<!error)(?<!fallback)messages?|\]\.content|instructions|template|prefix)$", re.IGNORECASE
)
#: Kinds whose values a plan has to name, besides addresses.
GUARDED: Final = frozenset(FieldKind) - {FieldKind.ADDRESS, FieldKind.PLAIN}

_TABLE: Final[Mapping[FieldKind, str]] = {
    FieldKind.CODE: "javascriptFunction customFunctionJavascriptFunction ifFunction elseFunction customCode "
    "customToolFunc condition conditionFunction messageHistory messageHistoryCode updateStateMemoryCode "
    "stateMemoryCode",
    FieldKind.COMMAND: "mcpServerConfig arguments",
    FieldKind.ADDRESS: "webPath openApiLink yamlLink repoLink githubInstanceApi",
    FieldKind.FILE: "folderPath databaseFilePath caPemPath clientKeyPath clientPemPath",
    FieldKind.SECRET: "bearerToken callbackSecret webhookSecret unstructuredAPIKey",
    FieldKind.REQUEST: "headers requestsGetHeaders requestsPostHeaders requestsPutHeaders requestsDeleteHeaders "
    "queryParams baseOptions additionalConfig overrideConfig executeFlowOverrideConfig",
    # Ids and names at a service, patterns, schemas, prompts, names in a certificate.
    FieldKind.PLAIN: "fileContent fileId fileKey fileName functionName functionInputVariables includePaths "
    "excludePaths ignorePath path serverName urlPrompt webhookSignatureHeader webhookDefaultInput "
    "requestsGetQueryParamsSchema requestsDeleteQueryParamsSchema requestsPostBodySchema requestsPutBodySchema "
    "destinationFolderIdMoveMessage destinationFolderIdCopyMessage parentFolderId folderId notionFolder jsonSchema",
}
_KINDS: Final = {name: kind for kind, names in _TABLE.items() for name in names.split()}
#: Fields that mean something else in one type than in the others.
_OF_TYPE: Final[Mapping[str, FieldKind]] = dict.fromkeys(
    ("faiss.basePath", "simpleStoreLlamaIndex.basePath"), FieldKind.FILE
)
#: Kinds by the words of a name.
_WORDS: Final = {
    **dict.fromkeys(("code", "javascript", "script", "function"), FieldKind.CODE),
    **dict.fromkeys(("command", "commands", "arguments", "args", "env"), FieldKind.COMMAND),
    **dict.fromkeys(("url", "urls", "uri", "host", "hostname", "endpoint", "proxy", "server"), FieldKind.ADDRESS),
    **dict.fromkeys(("path", "paths", "file", "folder", "directory"), FieldKind.FILE),
    **dict.fromkeys(("secret", "token", "password", "passphrase"), FieldKind.SECRET),
    **dict.fromkeys(("header", "headers"), FieldKind.REQUEST),
}
#: Types of fields that hold free text.
_TEXTS: Final = frozenset({"string", "code", "json", "password", "conditionFunction"})
_ADDRESS: Final = re.compile(
    r"(?:urls?|uri|host|hostname|endpoint|basepath|baseurl|base_url|apibase|server|proxy|webhook|(?<!mail)address)$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def kind_of(name: str, definition: InputEntry | None = None, type_: str = "") -> FieldKind:
    """Kind of a field of a node type, by the tables, else by its definition and the words of its name."""
    if kind := classified(name, type_):
        return kind
    if definition is not None:
        if definition["type"] == "password":
            return FieldKind.SECRET
        if definition["type"] not in _TEXTS:
            return FieldKind.PLAIN
        if definition["type"] == "code" and not definition.get("optional"):
            return FieldKind.CODE
    return next((_WORDS[word] for word in reversed(words_of(name)) if word in _WORDS), FieldKind.PLAIN)


def classified(name: str, type_: str = "") -> FieldKind | None:
    """Kind of a field that the tables or the pattern of addresses have."""
    return _OF_TYPE.get(f"{type_}.{name}") or _KINDS.get(name) or (FieldKind.ADDRESS if _ADDRESS.search(name) else None)


def looks_acting(name: str) -> bool:
    """True for a name with a word such as code, command, url, host, path, file, secret or token."""
    return any(word in _WORDS for word in words_of(name))


def words_of(name: str) -> list[str]:
    """Words of a name in camel case, in lower case."""
    return [word.casefold() for word in _WORD.findall(name)]


def free_texts(definitions: object) -> Iterator[InputEntry]:
    """Fields with free text among definitions, those in rows and tabs included."""
    for entry in definitions if isinstance(definitions, list | tuple) else ():
        if isinstance(entry, Mapping):
            if entry.get("type") in _TEXTS:
                yield cast("InputEntry", entry)
            yield from free_texts(entry.get("array"))
            yield from free_texts(entry.get("tabs"))
