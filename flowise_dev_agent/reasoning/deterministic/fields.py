"""Fields of a structured answer, taken from how people list them."""

import re
import unicodedata
from dataclasses import dataclass

from flowise_dev_agent.reasoning.deterministic.text import squeeze

_STRUCTURED = re.compile(
    r"\bjson\b|structured (?:output|data|answer|response|result|object)|strukturierte\w* (?:daten|ausgabe|antwort)|"
    r"(?:salida|datos|respuesta) estructurad[ao]s?|(?:sortie|données|réponse) structurée?s?|"
    r"(?:saída|dados|resposta) estruturad[ao]s?",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(?:csv|comma[- ]separated|kommagetrennt\w*|separad[ao]s? por comas|séparée?s? par des virgules)\b",
    re.IGNORECASE,
)
_END = (
    r"(?=\s+(?:of|from|out of|in|as|and (?:return|give|output|answer|put)|into|for|aus|von|und (?:gib|liefere)|als|"
    r"de una?|del|en|como|y devu\w+|d'une?|du|des|depuis|et (?:renvoi\w+|retourn\w+)|sous|"
    r"de um\w*|do|da|em|e devolv\w+|e retorn\w+)\b|[.;:()]|$)"
)
_LISTS = (
    re.compile(
        r"\b(?:fields?|keys?|properties|columns?|attributes?)(?:\s+(?:called|named|are))?\s*:?\s+(.+?)(?=[.;()]|$)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:felder[n]?|schlüssel[n]?|campos|claves|champs|clés|chaves)\s*:?\s+(.+?)(?=[.;()]|$)", re.IGNORECASE
    ),
    re.compile(r"\b(?:extract|pull out|find|identify|get|capture|parse|collect)s?\s+(.+?)" + _END, re.IGNORECASE),
    re.compile(r"\b(?:extrahier\w*|finde[nt]?|erkenn\w*)\s+(.+?)" + _END, re.IGNORECASE),
    re.compile(r"\b(?:extrae\w*|extraer|extrai\w*|extra(?:ire|it|is|yez)|identifi\w+)\s+(.+?)" + _END, re.IGNORECASE),
    re.compile(r"\bjson\s+(?:object\s+)?(?:with|containing|mit|con|avec|com)\s+(.+?)(?=[.;()]|$)", re.IGNORECASE),
)
_SEPARATOR = re.compile(r"\s*(?:,|;|/|&|\band\b|\bund\b|\bsowie\b|\by\b|\bet\b|\be\b|\bplus\b)\s*", re.IGNORECASE)
_ARTICLE = re.compile(
    r"^(?:(?:the|an?|its|their|his|her|any|all|every|der|die|das|den|dem|eine?n?|el|la|los|las|un|una|le|les|une|"
    r"o|os|as|um|uma|following|person'?s|customer'?s|user'?s)\s+|l['’]|d['’])+",
    re.IGNORECASE,
)
_NUMBER_LIKE = re.compile(
    r"\b(?:age|price|amount|count|number|quantity|total|year|score|rating|cost|sum|weight|height|alter|preis|betrag|"
    r"anzahl|menge|jahr|summe|edad|precio|cantidad|número|año|monto|âge|prix|montant|nombre|quantité|année|idade|"
    r"preço|quantidade|ano|valor)\b",
    re.IGNORECASE,
)
_NOT_NUMBER = re.compile(r"\b(?:phone|order|invoice|account|telephone|serial)\b", re.IGNORECASE)
_BOOLEAN_LIKE = re.compile(r"^(?:whether|if|ob|si|se)\b|^is\b", re.IGNORECASE)
_MAX_FIELDS = 20


@dataclass(frozen=True)
class Field:
    """One property: JSON-safe `name`, `kind` string, number or boolean, and what people call it."""

    name: str
    kind: str
    description: str


def wants_structure(text: str) -> bool:
    return bool(_STRUCTURED.search(text))


def wants_list(text: str) -> bool:
    return bool(_LIST.search(text))


def find_fields(text: str) -> tuple[Field, ...]:
    """The fields that the text lists, () when it lists none."""
    for pattern in _LISTS:
        for match in pattern.finditer(text):
            fields = _read(match.group(1))
            if fields:
                return fields
    return ()


def _read(listing: str) -> tuple[Field, ...]:
    fields: dict[str, Field] = {}
    for part in _SEPARATOR.split(listing):
        words = _ARTICLE.sub("", squeeze(part).strip(" \"'`“”«»"))
        name = _identifier(words)
        # A long stretch is prose, not the name of a field.
        if name and len(words.split()) <= 5 and name not in ("json", "data", "information", "text", "it", "them"):
            fields.setdefault(name, Field(name=name, kind=_kind(words), description=words))
    return tuple(fields.values())[:_MAX_FIELDS]


def _kind(words: str) -> str:
    if _BOOLEAN_LIKE.search(words):
        return "boolean"
    return "number" if _NUMBER_LIKE.search(words) and not _NOT_NUMBER.search(words) else "string"


def _identifier(words: str) -> str:
    plain = unicodedata.normalize("NFKD", words.replace("ß", "ss")).encode("ascii", "ignore").decode()
    parts = re.findall(r"[A-Za-z0-9]+", re.sub(r"'s\b", "", plain))
    name = "_".join(parts).lower()
    return name if name and not name[0].isdigit() else ""
