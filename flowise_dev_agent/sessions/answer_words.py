"""Answers of people as text, for the audit log and the summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from flowise_dev_agent.schemas.audit import AuditRow
from flowise_dev_agent.schemas.interrupts import Interrupt
from flowise_dev_agent.texts import has, say_in

_SKIPPED: Final = "(left open)"
_NOTHING: Final = (None, "", [], {})


def words_of(interrupt: Interrupt, answer: Mapping[str, Any]) -> str | None:
    """Text of an answer besides its action, None if there is none; clarifications include their questions."""
    said = {name: value for name, value in answer.items() if name not in ("type", "action") and value not in _NOTHING}
    if interrupt.type == "clarification" and isinstance(said.get("answers"), list):
        asked: list[str] = interrupt.data.questions
        given: Sequence[Any] = said["answers"]
        return "\n".join(
            f"{question}\n-> {str(reply).strip() or _SKIPPED}" for question, reply in zip(asked, given, strict=False)
        )
    feedback = [str(said.pop("feedback"))] if "feedback" in said else []
    return (
        "\n".join([*feedback, *(f"{name.replace('_', ' ')}: {_told(value)}" for name, value in said.items())]) or None
    )


def _told(value: Any) -> str:
    """A value of an answer in words: items by semicolons, settings as `name: value`."""
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        return ", ".join(f"{name}: {_told(one)}" for name, one in given.items() if one not in _NOTHING)
    if isinstance(value, list):
        return "; ".join(map(_told, cast("list[Any]", value)))
    return str(value)


def ledger_lines(rows: Sequence[AuditRow], language: str) -> Iterator[str]:
    """Audit rows as a Markdown list, with the people's texts quoted below."""
    for row in rows:
        code, place = f"ledger.{row.action}", f"`{row.chatflow_id}`" if row.chatflow_id else ""
        if row.action.endswith(".cancel"):
            code = "ledger.cancel"
        named = say_in(language, code, flow=place) if has(code) else row.action.replace("_", " ").replace(".", ": ")
        version = f" ({row.version})" if row.version else ""
        yield f"- {row.ts:%Y-%m-%d %H:%M:%S} **{_plain(row.actor)}** ({row.door}) {named}{version}"
        if row.words_sha256 is not None and row.action != "start":
            yield ""
            yield from (f"  > {line}" for line in (row.words or say_in(language, "ledger.erased")).splitlines())
            yield ""


def _plain(name: str) -> str:
    return name.replace("*", "").replace("`", "")
