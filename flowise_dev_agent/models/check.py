"""A check of whether a model will do: four small calls at most, whose result is kept and used."""

from datetime import UTC, datetime
from typing import Final

from flowise_dev_agent.errors import ModelOutputError
from flowise_dev_agent.models.engine import ModelEngine
from flowise_dev_agent.models.messages import Message, ToolDef
from flowise_dev_agent.models.parsing import UnusableOutputError, parse_object
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.service import ModelCheck

_SYSTEM: Final = "You are checked for what you can do. Do exactly what is asked."
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"first": {"type": "string"}, "last": {"type": "string"}},
    "required": ["first", "last"],
    "additionalProperties": False,
}
_LOOK: Final = ToolDef(
    name="check.word",
    description="Tells the secret word.",
    parameters={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
)
_ASK: Final = "Look up the secret word with the tool before you answer."
#: Tokens of the long text: what the smallest window that is enough holds, and the least without a price.
_TOKENS, _FILLER = 3_000, "This line says nothing of importance. "
_ANSWER_TOKENS: Final = 512


async def check_model(engine: ModelEngine, model: str | None = None) -> ModelCheck:
    """Check a model: does it answer, held to a schema, with tools, with both, and how much does it read?

    Raises ReasoningError if it does not answer at all.
    """
    known = await engine.capabilities(model)
    held, lost = await _is_held(engine, model)
    tools = await _calls(engine, model, both=False)
    both = tools and known.together is not False and await _calls(engine, model, both=True)
    if tools and held and known.together is not False:
        # A server that leaves the tools out beside a schema says nothing about it.
        known.together = both
    found = ModelCheck(
        checked_at=datetime.now(UTC),
        answers=True,
        schema_held=held and "prompt_only" not in lost and "schema" not in lost,
        prompt_only="prompt_only" in lost,
        tools=tools,
        tools_with_schema=both,
        reads_whole_prompt=await _reads(engine, model),
        window=await engine.window(model),
        output_tokens=engine.output_limit(known),
    )
    known.checked = found.model_dump(mode="json")
    await engine.keep(model)
    return found


async def _is_held(engine: ModelEngine, model: str | None) -> tuple[bool, tuple[str, ...]]:
    asked = [Message(role="user", content='Answer with first = "a" and last = "z".')]
    response = await engine.complete(
        asked, _SYSTEM, output_schema=_SCHEMA, model=model, phase="check", max_tokens=_ANSWER_TOKENS
    )
    return _words(response.text) is not None, response.lost


async def _calls(engine: ModelEngine, model: str | None, *, both: bool) -> bool:
    """True if the model calls a tool that it is asked to call."""
    try:
        response = await engine.complete(
            [Message(role="user", content=_ASK)],
            _SYSTEM,
            (_LOOK,),
            output_schema=_SCHEMA if both else None,
            model=model,
            phase="check",
            max_tokens=_ANSWER_TOKENS,
        )
    except ModelOutputError:
        return False
    return any(call.name == _LOOK.name for call in response.tool_calls)


async def _reads(engine: ModelEngine, model: str | None) -> bool:
    """True if a text of about 3 000 tokens is read from its first to its last line."""
    text = f"The first word is larch.\n{_FILLER * (_TOKENS * 4 // len(_FILLER))}\nThe last word is heron.\n"
    asked = [Message(role="user", content=f"{text}\nAnswer with the first and the last word.")]
    try:
        response = await engine.complete(
            asked, _SYSTEM, output_schema=_SCHEMA, model=model, phase="check", max_tokens=_ANSWER_TOKENS
        )
    except ModelOutputError:
        return False
    return _words(response.text) == ("larch", "heron")


def _words(text: str) -> tuple[str, str] | None:
    try:
        found = parse_object(text)
    except UnusableOutputError:
        return None
    if set(found) != {"first", "last"}:
        return None
    return str(found["first"]).strip(" .").lower(), str(found["last"]).strip(" .").lower()
