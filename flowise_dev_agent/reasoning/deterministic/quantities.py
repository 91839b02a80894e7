"""Numbers and switches of a requirement: temperature, window, chunk sizes and the like."""

import re
from dataclasses import dataclass, fields

from flowise_dev_agent.reasoning.deterministic.text import NUMBER, last_number, mentioned


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("<n>", NUMBER), re.IGNORECASE)


_LINK = r"\s*(?:\w+\s+)?(?:of|to|at|is|=|:|von|auf|de|a|en|à|em|para)?\s*"
_UNITS = r"(?:characters?|chars?|zeichen|caracteres|caractères|tokens?|words?)"
_MESSAGES = (
    r"(?:chat\s+)?(?:messages?|turns?|exchanges?|interactions?|questions?|replies|nachrichten|mensajes|interacciones|"
    r"échanges|mensagens|interações)"
)
_PIECES = (
    r"(?:chunks?|pieces?|parts?|segments?|abschnitte?n?|stücken?|blöcken?|fragmentos|trozos|morceaux|pedaços|trechos)"
)
_DOCUMENTS = (
    r"(?:documents?|chunks?|results?|passages?|hits?|dokumente?|treffer|abschnitte|documentos?|fragmentos|resultados?|"
    r"résultats?|morceaux|trechos)"
)

_TEMPERATURE = (
    _pattern(
        r"\b(?:temperature|temperatura|temperatur|température)\b[^.;,\n\d]{1,40}?\b(?:to|at|is|be|auf|a|en|à|em|para)\s+<n>"
    ),
    _pattern(rf"\btemp(?:erat(?:ure|ura|ur)|érature)?\b{_LINK}<n>"),
    _pattern(r"<n>\s+temperature\b"),
)
_MAX_TOKENS = (
    _pattern(rf"\bmax(?:imum|imal|\.|imo)?\s*(?:output\s*)?tokens?{_LINK}<n>"),
    _pattern(
        r"\b(?:at most|no more than|max(?:imum|imal|\.)?|up to|höchstens|como máximo|au plus|no máximo)"
        r"\s+(?:of\s+)?<n>\s+tokens?\b"
    ),
    _pattern(
        r"\b(?:limit\w*|cap|restrict\w*|keep|begrenz\w*|limita\w*)\b[^.;\n]{0,40}?\b(?:to|at|under|below|auf|a|à)\s+<n>\s+tokens?\b"
    ),
    _pattern(r"\b<n>[ -]tokens?\s+(?:limit|maximum|max|per (?:answer|reply|response))\b"),
)
_TOP_P = (_pattern(rf"\btop[ _-]?p\b{_LINK}<n>"),)
_WINDOW = (
    _pattern(rf"\b(?:last|past|previous|latest|recent)\s+<n>\s+{_MESSAGES}"),
    _pattern(rf"\b(?:letzten|vergangenen)\s+<n>\s+{_MESSAGES}"),
    _pattern(rf"\b(?:últim[oa]s)\s+<n>\s+{_MESSAGES}"),
    _pattern(r"\b<n>\s+(?:derniers|dernières)\s+(?:messages?|échanges|questions)"),
    _pattern(rf"\bwindow(?:\s+size)?{_LINK}<n>\b"),
    _pattern(r"\bk\s*(?:=|of|to|:)\s*<n>\b"),
    _pattern(r"\b<n>[ -](?:message|turn)\s+(?:window|memory)"),
    _pattern(rf"\b<n>\s+(?:most recent|latest|recent)\s+{_MESSAGES}"),
)
_MEMORY_TOKENS = (
    _pattern(
        r"\b(?:summary|summari[sz]\w+|memory|older)\b[^.;\n]{0,60}?\b(?:over|beyond|after|above|limit of|"
        r"more than|exceeds?)\s+<n>\s+tokens?"
    ),
    _pattern(rf"\bmax(?:imum)?\s*token\s*limit{_LINK}<n>"),
)
_CHUNK_SIZE = (
    _pattern(rf"\b{_PIECES}\s+(?:of|von|zu(?: je)?|de|mit)\s+(?:max\.?\s+|about\s+|around\s+|up to\s+)?<n>\b"),
    _pattern(rf"\bchunk[ -]?sizes?{_LINK}<n>"),
    _pattern(rf"\b<n>[ -]{_UNITS}[ -]{_PIECES}"),
    _pattern(rf"\b(?:split|divid\w+|zerleg\w*|découp\w+|aufgeteilt)\b[^.;\n]{{0,50}}?\b<n>\s+{_UNITS}"),
)
_OVERLAP = (
    _pattern(
        rf"\b(?:overlap(?:s|ping)?|überlappung|überlapp\w+|solapamiento|chevauchement|recouvrement|"
        rf"sobreposição|superposición){_LINK}<n>"
    ),
    _pattern(
        rf"\b<n>\s+(?:{_UNITS}\s+)?(?:of\s+|de\s+)?(?:overlap\w*|überlapp\w*|solapamiento|chevauchement|"
        rf"recouvrement|sobreposição|superposición)"
    ),
)
_TOP_K = (
    _pattern(rf"\b(?:top|best|first|beste[nr]?|mejores|meilleurs)\s+<n>\s+{_DOCUMENTS}"),
    _pattern(rf"\b(?:top[ _-]?k){_LINK}<n>"),
    _pattern(
        rf"\b(?:retrieve|return|fetch|find|use)s?\s+(?:the\s+)?(?:top\s+|best\s+)?<n>\s+(?:(?:most\s+relevant|closest|nearest|best)\s+)?{_DOCUMENTS}"
    ),
)
_SIMILARITY = (
    _pattern(r"\b(?:similarity|score|threshold|relevance)\b[^.;,\n\d]{0,40}?<n>\s*(?:%|percent|prozent)?"),
    _pattern(r"\b<n>\s*(?:%|percent|prozent)\s+(?:similar\w*|match|ähnlich\w*)"),
)
_ITERATIONS = (
    _pattern(rf"\bmax(?:imum|\.)?\s*(?:of\s*)?(?:iterations?|steps?){_LINK}<n>"),
    _pattern(r"\b(?:at most|max(?:imum)?|up to|no more than)\s+<n>\s+(?:iterations?|steps?|tool calls)"),
)
_LIST_LENGTH = (_pattern(r"\blist of\s+<n>\b"), _pattern(r"\b<n>\s+(?:items?|entries|keywords?|tags?|ideas?)\b"))
_STREAMING = re.compile(r"\bstream(?:ing|s|ed)?\b", re.IGNORECASE)
_OFF = re.compile(
    r"\b(?:no|without|disable|turn off|switch off|ohne|sin|sans|sem)\s+(?:token\s+)?streaming\b|"
    r"\bstreaming\s+(?:off|disabled)\b",
    re.IGNORECASE,
)
_IMAGES = re.compile(
    r"\b(?:images?|pictures?|photos?)\s+uploads?\b|\bupload(?:s|ing|ed)?\s+(?:images?|pictures?|photos?)\b|\bvision\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Quantities:
    """Values that the text gives; None where it gives none."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    memory_window: int | None = None
    memory_tokens: int | None = None
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    top_k: int | None = None
    max_iterations: int | None = None
    similarity: int | None = None
    list_length: int | None = None
    streaming: bool | None = None
    image_uploads: bool | None = None

    @property
    def any(self) -> bool:
        return any(getattr(self, item.name) is not None for item in fields(self) if item.name != "list_length")


def read_quantities(text: str) -> Quantities:
    return Quantities(
        temperature=last_number(text, *_TEMPERATURE),
        max_tokens=_whole(text, _MAX_TOKENS),
        top_p=last_number(text, *_TOP_P),
        memory_window=_whole(text, _WINDOW),
        memory_tokens=_whole(text, _MEMORY_TOKENS),
        chunk_size=_whole(text, _CHUNK_SIZE),
        chunk_overlap=_whole(text, _OVERLAP),
        top_k=_whole(text, _TOP_K),
        max_iterations=_whole(text, _ITERATIONS),
        similarity=_whole(text, _SIMILARITY),
        list_length=_whole(text, _LIST_LENGTH),
        streaming=False if _OFF.search(text) else True if mentioned(text, _STREAMING) else None,
        image_uploads=True if mentioned(text, _IMAGES) else None,
    )


def _whole(text: str, patterns: tuple[re.Pattern[str], ...]) -> int | None:
    number = last_number(text, *patterns)
    return None if number is None else round(number)
