"""The words by which a requirement says what it needs, from `vocabulary.toml`, and patterns that are more than words.

Everything is in English, German, Spanish, French and Portuguese.
"""

import re
import tomllib
from importlib.resources import files
from typing import Any

_TABLE: dict[str, Any] = tomllib.loads(files(__package__ or "").joinpath("vocabulary.toml").read_text("utf-8"))


def _whole(alternatives: list[str]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(alternatives) + r")(?!\w)", re.IGNORECASE)


def _words(name: str) -> re.Pattern[str]:
    return _whole(_TABLE["words"][name])


def _nodes(name: str) -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    """(words, node names in order of preference) of a table, in its order."""
    return tuple((_whole(row["words"]), tuple(row["nodes"])) for row in _TABLE[name])


FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(text.split()) for code, text in _TABLE["function_words"].items()
}
EMPTY_ROLE_WORDS = frozenset(str(_TABLE["lists"]["empty_role_words"]).split())
LOOSE_ENDS = frozenset(str(_TABLE["lists"]["loose_ends"]).split())

# --- What is to be done with a flow --------------------------------------------------------------------------------

CHANGE = _words("change")
ADD = _words("add")
ADD_TO = _words("add_to")
THIS_FLOW = _words("this_flow")
CREATE = _words("create")
COPY = _words("copy")
REMOVE = _words("remove")
FLOW = _words("flow")
QUESTION = re.compile(
    r"^\s*(?:what|which|why|how (?!about)|does|do|is|are|can you (?:tell|explain)|explain|describe|"
    r"tell me (?:what|which|how|why)|was|welche\w*|warum|wieso|wie|qué|cuál\w*|por qué|cómo|quel\w*|pourquoi|comment|"
    r"que|qual|por que|como)\b",
    re.IGNORECASE,
)

# --- Kinds of flows and parts --------------------------------------------------------------------------------------

AGENT = _words("agent")
ALL_AGENTS = _words("all_agents")
#: Only words that name a conversation; "bot" alone may also be a one-way thing.
CHAT = _words("chat")
ANY_BOT = _words("any_bot")
CHAIN = _words("chain")
MULTI_AGENT = _words("multi_agent")
#: A person is asked before the flow goes on; questions go different ways.
APPROVAL = _words("approval")
ROUTES = _words("routes")
TEAM = _words("team")
LOOPS = _words("loops")
HUMAN = _words("human")
MEMORY = _words("memory")
SUMMARY_MEMORY = _words("summary_memory")
BUFFER_MEMORY = _words("buffer_memory")
WINDOW_MEMORY = _words("window_memory")
NAMED_MEMORY = _nodes("named_memory")
TOOLS = _nodes("tools")
#: Chains that are made for one purpose ("ask our SQL database").
CHAINS = _nodes("chains")
#: Names of parts of a flow: specific enough to build from.
PARTS = _words("parts")

# --- Answers from documents ----------------------------------------------------------------------------------------

RAG = _words("rag")
SPLIT = _words("split")
SPLITTERS = _nodes("splitters")
SOURCES = _words("sources")
VECTOR_STORES = _nodes("vector_stores")
LOADERS = _nodes("loaders")
#: The documents are one ability among others.
BESIDES = _words("besides")
_DOCUMENT = (
    r"(?:polic(?:y|ies)|handbooks?|manuals?|documents?|docs|documentation|faqs?|guides?|guidelines|catalogu?es?|"
    r"contracts?|texts?|articles?|books?|notes|reports?|wiki|files?|pdfs?|website|web ?pages?|transcripts?|terms|"
    r"price ?lists?|brochures?|menus?|papers?|regulations|"
    r"\w*richtlinien?|\w*handbuch(?:es|s)?|\w*dokument(?:e|en|s)?|\w*texte?[sn]?|\w*vertr[aä]ge?s?|anleitung(?:en)?|"
    r"\w*bedingungen|políticas?|manual(?:es)?|documentos?|textos?|contratos?|guías?|catálogos?|"
    r"politiques?|manuels?|règlements?|textes?|contrats?|manuais|regulamentos?|guias?)"
)
#: "answers questions about our handbook"; the group `topic` is what the documents are called.
ABOUT_DOCUMENTS = re.compile(
    r"(?:question|answer|ask|chat|talk|discuss|quer(?:y|ies)|look|search|base|inform|know|frage|antwort|beantwort|auskunft|pregunt|"
    r"respond|consult|répon|interrog|pergunt)\w*[^.;!?\n]{0,40}?"
    r"\b(?:about|over|on|from|in|using|with|to|through|within|zu|über|aus|in|anhand|mit|sobre|de|del|desde|con|sur|du|"
    r"des|dans|avec|do|da|dos|em|com)\s+"
    r"(?:our|my|the|a|an|this|these|your|some|unser\w*|mein\w*|der|die|das|dem|den|einem?r?|dies\w*|nuestr[oa]s?|mis?|"
    r"el|la|los|las|un[ae]?|est[ea]|notre|nos|mon|mes|le|les|l['’]|cette?|nosso|nossa|meu|minha|o|os|as|uma?|ess?e)?\s*"
    r"(?P<topic>(?:[\w'’-]+\s+){0,4}?" + _DOCUMENT + r")\b",
    re.IGNORECASE,
)
#: Words by which a page that is named by its address becomes a source of answers.
ASKS = re.compile(
    r"\b(?:questions?|answers?|ask|q ?& ?a|fragen?|antwort\w*|beantwort\w*|pregunt\w*|respond\w*|répon\w*|"
    r"pergunt\w*)\b",
    re.IGNORECASE,
)
#: Text that is announced and not there yet.
PROMISE = re.compile(
    r"\b(?:i(?:'ll| will| am going to|'m going to| can| would like to)|we(?:'ll| will| are going to)|to be|will be)\s+"
    r"(?:\w+\s+){0,2}?(?:paste|pasted|provide|provided|upload|uploaded|add|added|send|insert|attach|give|supply|fill|"
    r"supplied|filled)\b[^.;!?\n]{0,60}"
    r"|\b(?:pasted|provided|copied|uploaded)[ -](?:in )?(?:text|document|content|policy|handbook|manual|faq|"
    r"article)s?\b"
    r"|\btext (?:that )?(?:i|we|the user) (?:paste|provide)s?\b|\btext to follow\b"
    r"|\b(?:füge|werde|kopiere|liefere|reiche)\b[^.;!?\n]{0,50}"
    r"\b(?:ein|einfügen|kopieren|nach|nachreichen|liefern|hineinkopieren)\b|\beingefügte\w*\s+\w+"
    r"|\b(?:pegaré|voy a pegar|pondré|añadiré|pego|proporcionaré)\b[^.;!?\n]{0,50}|\b(?:texto|documento) pegad[oa]\b"
    r"|\bje (?:vais )?(?:coller(?:ai)?|fournir(?:ai)?|ajouter(?:ai)?|colle)\b[^.;!?\n]{0,50}"
    r"|\b(?:texte|document) collé\b"
    r"|\b(?:vou colar|colarei|vou fornecer|fornecerei|adicionarei)\b[^.;!?\n]{0,50}|\b(?:texto|documento) colad[oa]\b",
    re.IGNORECASE,
)
#: The documents were put there before.
STORED = re.compile(
    r"\b(?:stored|indexed|embedded|saved|loaded|kept|lives?|existing|already|gespeichert|indiziert|liegen|guardad[oa]s?|"
    r"indexad[oa]s?|stocké\w*|indexé\w*|armazenad[oa]s?)\b[^.;!?\n]{0,60}",
    re.IGNORECASE,
)
INDEX_NAME = re.compile(
    r"\b(?:index|collection|table|namespace|bucket|database|tabelle|sammlung|índice|colección|tabla|coleção|tabela)\s+"
    r"(?:called\s+|named\s+)?[\"'“„«`]?([\w.-]+)",
    re.IGNORECASE,
)

# --- One text in, one text out -------------------------------------------------------------------------------------

TRANSLATE = _words("translate")
TRANSFORM = _words("transforms")
#: A prompt given word for word; a system prompt is another thing.
PROMPT_TEXT = re.compile(
    r"(?<!system )(?<!system-)\b(?:prompt|template)s?(?: template| text)?\b"
    r"(?:\s+(?:to|is|be|should be|auf|in|a|à|para|por|en))*\s*:?\s*"
    r"(?:\"([^\"]{8,})\"|“([^”]{8,})”|„([^“”]{8,})[“”]|«\s*([^»]{8,}?)\s*»)",
    re.IGNORECASE,
)
TARGET_LANGUAGE = re.compile(
    r"\b(?:in)?to (?P<en>[A-Z][a-zé]+)\b|\b(?:ins|nach|in) (?P<de>[A-Z][a-zäöü]+(?:isch|e|n))\b|"
    r"\b(?:al|a) (?P<es>(?:ingl|franc|alem|espa|ital|portug|chin|japon|rus|neerl|cat)\w+)\b|"
    r"\b(?:en|vers l['’]?e?) ?(?P<fr>(?:angl|alle|esp|ital|portug|chin|japon|russ|néerl|franç)\w+)\b|"
    r"\b(?:para|em|ao?) (?:o )?(?P<pt>(?:ingl|franc|alem|espan|ital|portug|chin|japon|russ)\w+)\b"
)

# --- Moderation ----------------------------------------------------------------------------------------------------

REFUSE = _words("refuse")
CONTENT_MODERATION = _words("content_moderation")
DENIED_WORDS = re.compile(
    r"\b(?:words?|phrases?|terms?|contain(?:s|ing)?|mention(?:s|ing)?|including|wörter[n]?|wort(?:e|en)?|begriffe?n?|"
    r"enthalt\w*|palabras?|conten\w+|contien\w+|mots?|palavras?|contê\w+|contenha\w*)\b",
    re.IGNORECASE,
)
WORD_LIST = re.compile(
    r"(?:words?|phrases?|terms?|mention(?:s|ing)?|wörter[n]?|worte?n?|begriffe?n?|palabras?|mots?|palavras?)\s*:?\s+"
    r"(?P<list>[\w' -]+(?:,\s*[\w' -]+)*(?:,?\s+(?:or|and|oder|und|o|y|ou|et|e)\s+[\w'-]+)?)",
    re.IGNORECASE,
)

# --- Node types asked for by name ----------------------------------------------------------------------------------

_NODE_WORD = r"(?i:nodes?|components?|knoten|komponente|nodos?|componente|nœuds?|nó|nós)"
_OPENING, _CLOSING = r"[\"'`“”„«]", r"[\"'`“”»]"
NAMED_NODE = re.compile(
    rf"\b{_NODE_WORD}\s+(?:type\s+)?(?i:called|named|namens|llamado|nommé|appelé|chamado)?\s*"
    rf"{_OPENING}\s*(?P<a>[\w .-]{{2,60}}?)\s*{_CLOSING}"
    rf"|{_OPENING}\s*(?P<b>[\w .-]{{2,60}}?)\s*{_CLOSING}\s*-?{_NODE_WORD}\b"
    rf"|\b(?P<c>[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z]+(?:[A-Z][A-Za-z0-9]*)+)\s+{_NODE_WORD}\b"
    rf"|\b{_NODE_WORD}\s+(?:called |named )?(?P<d>[a-z]+(?:[A-Z][a-z0-9]*)+)\b",
)
CAMEL_CASE = re.compile(r"\b[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+\b")
