"""Wishes that fall into parts: tasks that follow one another, and subjects that get a part each."""

import re

from flowise_dev_agent.reasoning.deterministic import vocabulary as words
from flowise_dev_agent.reasoning.deterministic.text import mentioned, squeeze

_NEXT = re.compile(
    r"[,;.]?\s*\b(?:and\s+)?(?:then|after(?:wards| that)|finally|next)\b[\s,:]*"
    r"|[,;.]?\s*\b(?:and\s+)?(?:in|as)\s+a\s+(?:second|third|fourth|last|final|next)\s+step\b[\s,:]*"
    r"|[,;.]?\s*\b(?:and\s+)?(?:an?|the)?\s*(?:second|third|another|next|last)\s+(?:llm|agent|chain|model|node|step|prompt)\b"
    r"|[,;.]?\s*\b(?:und\s+)?(?:dann|danach|anschließend|zum schluss)\b[\s,:]*"
    r"|[,;.]?\s*\b(?:y\s+)?(?:luego|después|por último|finalmente)\b[\s,:]*"
    r"|[,;.]?\s*\b(?:et\s+)?(?:puis|ensuite|enfin)\b[\s,:]*"
    r"|[,;.]?\s*\b(?:e\s+)?(?:depois|em seguida|por fim)\b[\s,:]*"
    r"|(?:(?<=\s)|^)\(?[2-9][.)]\s+",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?:first(?:ly)?|(?:in|as) a first step|(?:an?|one|the first) (?:llm|agent|chain|model)|step 1|zuerst|zunächst|"
    r"primero|d['’]abord|primeiro)\b[\s,:]*|(?:^|\s)\(?1[.)]\s+",
    re.IGNORECASE,
)
#: A task says what is done to something.
_DOES = re.compile(
    r"\b(?:writ|draft|creat|generat|summar|translat|rewrit|extract|classif|review|check|correct|improv|polish|research|"
    r"find|collect|outlin|list|turn|convert|answer|analy|explain|critic|edit|shorten|schreib|erstell|übersetz|fass|prüf|"
    r"korrigier|verbesser|escrib|redact|traduc|resum|revis|corrig|écri|rédig|tradui|résum|vérifi|escrev|traduz|format|"
    r"evaluat|score|rank|plan|propos|suggest|compos)\w*",
    re.IGNORECASE,
)
_MOST = 6
_ONE_EACH = re.compile(
    r"\bone\s+(?:\w+\s+)?(?:over|about|for|on|from|of|with|searching|covering)\s+(?:our|my|the|an?)?\s*"
    r"(?P<topic>[\w'’ -]{2,40}?)(?=\s+(?:and|or|that|which)\b|\s*[,.;()]|\s*$)",
    re.IGNORECASE,
)
_KIND_OF_QUESTION = re.compile(
    r"\b(?P<topic>(?!the\b|user|their\b|your\b|our\b|test\b|up\b|more\b|any\b|these\b|other\b|follow|answer|all\b|ask|what|"
    r"about\b|some\b|into\b|different\b)[\w-]+)\s+(?:questions?|requests?|issues?|enquiries|inquiries|topics?)\b",
    re.IGNORECASE,
)


def read_stages(text: str) -> tuple[str, ...]:
    """The tasks in their order, at least two; () when the text names only one."""
    text = squeeze(text)
    begin = _FIRST.search(text)
    parts = [squeeze(part).strip(" ,;:.") for part in _NEXT.split(text[begin.end() :] if begin else text)]
    parts = [part for part in parts if len(part.split()) >= 2]
    if not 2 <= len(parts) <= _MOST or not all(_DOES.search(part) for part in parts):
        return ()
    # "and then" in a description of one task is no second step.
    tasks = sum(mentioned(part, words.TRANSFORM) or mentioned(part, words.TRANSLATE) for part in parts)
    return tuple(parts) if begin or tasks >= 2 else ()


def read_topics(text: str) -> tuple[str, ...]:
    """Subjects that are told apart ("one about sales and one about support"), at least two; () otherwise."""
    for pattern in (_ONE_EACH, _KIND_OF_QUESTION):
        found = dict.fromkeys(squeeze(match.group("topic")).casefold() for match in pattern.finditer(text))
        if 2 <= len(found) <= _MOST:
            return tuple(found)
    return ()
