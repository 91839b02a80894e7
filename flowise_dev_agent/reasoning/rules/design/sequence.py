"""Tasks that follow one another."""

from flowise_dev_agent.reasoning.rules.language import grammar, words
from flowise_dev_agent.reasoning.rules.language.text import mentioned, squeeze

_NEXT = grammar.pattern("sequence", "next")
_FIRST = grammar.pattern("sequence", "first")
#: A task says what is done to something.
DOES = grammar.pattern("sequence", "does")
_MOST = 6


def split_tasks(text: str) -> list[str]:
    """The tasks in their order, at least two; [] when the text names only one."""
    text = squeeze(text)
    begin = _FIRST.search(text)
    parts = [squeeze(part).strip(" ,;:.") for part in _NEXT.split(text[begin.end() :] if begin else text)]
    parts = [part for part in parts if len(part.split()) >= 2]
    if not 2 <= len(parts) <= _MOST or not all(DOES.search(part) for part in parts):
        return []
    # "and then" in a description of one task is no second step.
    tasks = sum(mentioned(part, words.TRANSFORM) or mentioned(part, words.TRANSLATE) for part in parts)
    return [f"{part[:1].upper()}{part[1:]}" for part in parts] if begin or tasks >= 2 else []
