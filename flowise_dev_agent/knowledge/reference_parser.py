"""Reads `FLOWISE_NODE_REFERENCE.md` back: the snapshot of a checkout without a server."""

import json
import re
from datetime import datetime
from typing import Any, cast

from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.knowledge.reference import CREDENTIAL, DEPRECATED, FLAGS, REFERENCE_FILE, TITLE, VALUES
from flowise_dev_agent.knowledge.snapshot import SnapshotMeta
from flowise_dev_agent.patch import InputEntry, NodeType, OutputEntry

_META = re.compile(
    r"(?P<count>\d+) node types of Flowise (?P<version>\S+), SHA-256 `(?P<sha>[0-9a-f]{64})`, from `(?P<source>[^`]+)`"
    r" at (?P<at>\S+)\."
)
_TOKEN = re.compile(r'`(?P<code>[^`]*)`|"(?P<label>[^"`]*)"|(?P<word>[A-Za-z][A-Za-z ]*[A-Za-z])|, |\s+')
_CATEGORY = re.compile(r"## (?P<name>.+) \(\d+\)")
_FLAGS = {word: (key, value) for word, key, value in FLAGS}
_VALUES = dict(VALUES)


def parse_reference(page: str) -> tuple[list[NodeType], SnapshotMeta]:
    """Raw node definitions and where they come from.

    Raises ConfigurationError that names the line which is not of the page's form.
    """
    lines = page.splitlines()
    if not lines or lines[0] != TITLE:
        raise _broken(1, f"the first line is not {TITLE!r}")
    nodes: list[NodeType] = []
    meta: SnapshotMeta | None = None
    category = ""
    for number, line in enumerate(lines, start=1):
        try:
            if match := _CATEGORY.fullmatch(line):
                category = match["name"]
            elif line.startswith("### "):
                nodes.append({"name": line.removeprefix("### "), "category": category})
            elif nodes and line and not line.startswith(">"):
                _add(nodes[-1], line)
            elif match := _META.fullmatch(line):
                meta = _meta(match)
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise _broken(number, f"{line[:80]!r} cannot be read ({error})") from None
    if meta is None:
        raise _broken(3, "the line that says which Flowise the page describes is missing")
    return nodes, meta


def _meta(match: re.Match[str]) -> SnapshotMeta:
    return SnapshotMeta(
        flowise_version=match["version"],
        node_count=int(match["count"]),
        sha256=match["sha"],
        generated_at=datetime.fromisoformat(match["at"]),
        source=match["source"],
    )


def _add(node: NodeType, line: str) -> None:
    """Take one line of a node's section in."""
    match line.split(" ")[:2]:
        case ["-", "Classes"]:
            node["baseClasses"] = _codes(line)
        case ["-", "Credential"]:
            node["credential"] = _credential(_tokens(line))
        case ["-", "Takes" | "Field"]:
            node.setdefault("inputs", []).append(_input(_tokens(line)))
        case ["-", "Gives"]:
            node.setdefault("outputs", []).append(_output(_tokens(line)))
        case ["-", "Also"]:
            node.update(json.loads(_codes(line)[0]))
        case _:
            _title(node, _tokens(line))


Token = tuple[str, str]


def _tokens(line: str) -> list[Token]:
    """(kind, text) of code spans, labels and words, in order; raises ValueError for anything else."""
    tokens: list[Token] = []
    position = 0
    text = line.removeprefix("- ")
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(f"unexpected {text[position : position + 20]!r}")
        if match.lastgroup:
            tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return tokens


def _codes(line: str) -> list[str]:
    return [text for kind, text in _tokens(line) if kind == "code"]


def _title(node: NodeType, tokens: list[Token]) -> None:
    while tokens:
        match tokens.pop(0):
            case ("label", text):
                node["label"] = text
            case ("word", "version"):
                node["version"] = json.loads(tokens.pop(0)[1])
            case ("word", "type"):
                node["type"] = tokens.pop(0)[1]
            case ("word", "deprecated"):
                node["badge"] = DEPRECATED
            case other:
                raise ValueError(f"unexpected {other[1]!r}")


def _credential(tokens: list[Token]) -> InputEntry:
    tokens.pop(0)
    credential: dict[str, Any] = {**CREDENTIAL, "credentialNames": _leading_codes(tokens)}
    while tokens:
        match tokens.pop(0):
            case ("word", "optional"):
                credential["optional"] = True
            case ("word", "more"):
                credential.update(json.loads(tokens.pop(0)[1]))
            case other:
                raise ValueError(f"unexpected {other[1]!r}")
    return cast("InputEntry", {key: value for key, value in credential.items() if value is not None})


def _input(tokens: list[Token]) -> InputEntry:
    entry = _named(tokens)
    if kind := _take(tokens, "code"):
        entry["type"] = kind
    while tokens:
        kind, word = tokens.pop(0)
        if kind != "word":
            raise ValueError(f"unexpected {word!r}")
        if word in _FLAGS:
            key, value = _FLAGS[word]
            entry[key] = value
        elif word in _VALUES:
            entry[_VALUES[word]] = json.loads(tokens.pop(0)[1])
        elif word == "options":
            entry["options"] = _options(tokens)
        elif word == "more":
            entry.update(json.loads(tokens.pop(0)[1]))
        else:
            raise ValueError(f"unexpected {word!r}")
    return cast("InputEntry", entry)


def _output(tokens: list[Token]) -> OutputEntry:
    entry = _named(tokens)
    if classes := _leading_codes(tokens):
        entry["baseClasses"] = classes
    if tokens:
        tokens.pop(0)
        entry.update(json.loads(tokens.pop(0)[1]))
    return cast("OutputEntry", entry)


def _named(tokens: list[Token]) -> dict[str, Any]:
    """What follows the first word of a line: a name and perhaps a label."""
    tokens.pop(0)
    entry: dict[str, Any] = {"name": tokens.pop(0)[1]}
    label = _take(tokens, "label")
    if label is not None:
        entry["label"] = label
    return entry


def _options(tokens: list[Token]) -> list[dict[str, str]]:
    options: list[dict[str, str]] = []
    while (name := _take(tokens, "code")) is not None:
        label = _take(tokens, "label")
        options.append({"label": name if label is None else label, "name": name})
    return options


def _leading_codes(tokens: list[Token]) -> list[str]:
    codes: list[str] = []
    while (code := _take(tokens, "code")) is not None:
        codes.append(code)
    return codes


def _take(tokens: list[Token], kind: str) -> str | None:
    """The next token's text if it is of this kind."""
    return tokens.pop(0)[1] if tokens and tokens[0][0] == kind else None


def _broken(line: int, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{REFERENCE_FILE}, line {line}: {what}.",
        hint=f"Get the page back with `git checkout HEAD -- {REFERENCE_FILE}`, or create it again from a server "
        "with `python -m flowise_dev_agent.knowledge.refresh --nodes --from-server`.",
    )
