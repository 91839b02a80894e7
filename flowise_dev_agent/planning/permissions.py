"""Permissions of an approval in words."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from flowise_dev_agent.patch.model.labels import credential_name
from flowise_dev_agent.patch.model.placeholders import MARK, stands_in
from flowise_dev_agent.redaction import redacted
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Capability, LineChange
from flowise_dev_agent.texts import in_language, listed, quoted, say_in, text

#: Characters of a command or a path; the values of the plan have it in full.
_SHOWN_TEXT: Final = 200
_VARIABLE: Final = re.compile(r"\{\{\s*\$vars\.(\w+)", re.IGNORECASE)


def capability_words(
    capability: Capability | None,
    language: str = "en",
    names: Mapping[str, str] | None = None,
    in_text: Collection[str] = (),
    branches: Mapping[LineChange, Sequence[str]] | None = None,
    to_choose: Collection[str] = (),
) -> list[str]:
    """Permissions of an approval, as text, besides the settings of the nodes that the plan lists.

    `in_text` are the hosts that stand only in texts of code, `branches` the words of the branches of lines,
    and `to_choose` the types of credentials that the next step asks for.
    """
    if capability is None:
        return []
    said, named = partial(say_in, language), names or {}

    def node(id_: str) -> str:
        return named.get(id_, id_)

    def ways(line: LineChange) -> list[str]:
        told = (branches or {}).get(line, [""])
        return [f"{node(line.source)} ({branch})" if branch else node(line.source) for branch in told]

    words = [
        said("plan.allows.host_in_text" if where in in_text else "plan.allows.host", host=where)
        for where in reached(capability, said)
    ]
    words += [
        said("plan.allows.command", command=shortened(command, _SHOWN_TEXT))
        for one in capability.commands
        if (command := _command(str(redacted(one))))
    ]
    words += [said("plan.allows.file", path=shortened(one, _SHOWN_TEXT)) for one in capability.files]
    words += [said("plan.allows.code", node=node(id_)) for id_ in capability.code]
    words += [said("plan.allows.before_approval", node=node(id_)) for id_ in capability.before_approval]
    new = {id_ for id_, one in capability.nodes.items() if one.action == "add"}
    words += [
        said(
            "plan.allows.line_add" if one.change == "add" else "plan.allows.line_remove",
            source=way,
            target=node(one.target),
        )
        for one in capability.lines
        if not {one.source, one.target} & new  # in the outline
        for way in ways(one)
    ]
    types = {id_: one.node_name for id_, one in capability.nodes.items()}
    words += [
        said("plan.allows.tool_to_come", node=node(tool.node_id))
        if stands_in(tool.name)
        else said("plan.allows.tool", node=node(tool.node_id), tool=node(tool.name))
        for tool in capability.tools
        if types.get(tool.node_id) != tool.name  # a tool as a node of its own
    ]
    words += [
        said(
            "plan.allows.credential_to_choose" if one.type in to_choose else "plan.allows.credential",
            type=credential_name(one.type),
        )
        if one.node_id == "*"
        else said("plan.allows.node_credential", node=node(one.node_id), type=credential_name(one.type))
        for one in capability.credentials
    ]
    for effect in capability.effects:
        match effect.partition(":"):
            case "document_store", *_:
                words.append(said("plan.allows.document_store"))
            case "credential", *_:
                words.append(said("plan.allows.new_credential"))
            case "uploads", _, kinds:
                words.append(uploads_text([kind for kind in kinds.split(",") if kind], language))
            case "starters", *_:
                words.append(said("plan.allows.starters"))
            case "tool", _, key:
                words.append(said("plan.allows.new_tool", tool=key.partition(":")[0]))
            case _, _, node_id:
                words.append(said("plan.allows.upsert", node=node(node_id)))
    return words


def _command(text: str) -> str:
    """Command line of what starts a server; empty for a server that is reached by its address, which stands among the
    hosts.
    """
    with suppress(ValueError):
        given = json.loads(text.replace("\u23ce", " "))  # lines are joined in an approval
        if isinstance(given, dict) and ("command" in given or "url" in given):
            arguments = given.get("args")
            parts = [given.get("command"), *(arguments if isinstance(arguments, list) else [])]
            return " ".join(str(part) for part in parts if part) if "command" in given else ""
    return text


def reached(capability: Capability, said: Callable[..., str]) -> list[str]:
    """Hosts that Flowise may call, in words."""
    found: list[str] = []
    for host in capability.hosts:
        if variable := _VARIABLE.search(host):
            found.append(said("plan.reach.variable", name=variable[1]))
        elif MARK.casefold() in host.casefold():
            found.append(said("plan.reach.placeholder"))
        elif host == "file:":
            found.append(said("plan.reach.files"))
        elif re.search(r"[\w\]]", host):
            found.append(host.strip(".,;"))
    return list(dict.fromkeys(found))


def uploads_text(kinds: Sequence[str], language: str = "en") -> str:
    """Files that people can upload, in words."""
    if not kinds:
        return in_language(text("plan.allows.no_uploads"), language)
    names = [say_in(language, f"plan.upload.{kind}") for kind in kinds]
    return in_language(text("plan.allows.uploads", files=names), language)


def starters_text(questions: Sequence[str], language: str = "en") -> str:
    """Starter questions of the chat, in words."""
    code = "plan.starters" if questions else "plan.no_starters"
    return in_language(text(code, questions=listed([quoted(one) for one in questions]) if questions else ""), language)
