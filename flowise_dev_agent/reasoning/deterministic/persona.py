"""Who the flow's model is to be and how it is to behave: the words for its system prompt."""

import re
from dataclasses import dataclass

from flowise_dev_agent.reasoning.deterministic.text import sentences, squeeze
from flowise_dev_agent.reasoning.deterministic.vocabulary import ADD, CHANGE, EMPTY_ROLE_WORDS, REMOVE

_NOUN = (
    r"(?:chat ?-?bots?|bots?|assistants?|tutors?|agents?|coach|advis[eo]rs?|helpers?|guide|concierge|teacher|"
    r"trainer|companion|consultant|"
    r"expert|therapist|recruiter|receptionist|librarian|storyteller|interviewer|writer|editor|translator|"
    r"critic|buddy|bibliothekar(?:in)?|"
    r"[\w-]*assistent(?:en|in)?|[\w-]*berater(?:in|s)?|[\w-]*helfer(?:in|s)?|[\w-]*lehrer(?:in|s)?|"
    r"[\w-]*tutor(?:in|s)?|[\w-]*bots?|"
    r"asistente|profesor(?:a)?|asesor(?:a)?|agente|professeure?|conseill(?:er|ère)|assistente|professor(?:a)?|"
    r"conselheir[oa]|entrenador(?:a)?|entraîneur)"
)
_STOP = (
    r"with|that|which|who|whom|using|uses?|powered|based|built|running|and|so|where|via|on top|over|without|including|"
    r"mit|der|die|das|welche[rs]?|und|ohne|auf basis|basierend|"
    r"con|que|usando|y|sin|basad[oa]|avec|qui|utilisant|et|sans|basée?|com|usando|e|sem|basead[oa]"
)
#: Verb forms and pronouns that stand between the verb of the request and the role.
_ROLE_BEFORE = re.compile(rf"(?P<role>(?:[\w'’&+-]+\s+){{0,5}}?{_NOUN})\b(?P<behind>.*)", re.IGNORECASE | re.DOTALL)
_PURPOSE = re.compile(
    rf"^\s+(?P<purpose>(?:for|of|about|in|für|zum|zur|über|para|de|del|sobre|pour|du|des|d['’]|do|da)"
    rf"\s+(?!which|that)(?:(?!\b(?:{_STOP})\b)[^,.;:!?\n])+)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:please|bitte|por favor|s'il (?:te|vous) plaît|can you|could you|i (?:want|need|would like)|i'd like|"
    r"we (?:want|need)|let'?s|"
    r"build|create|make|design|set up|generate|give|develop|implement|write|me|us|bau(?:e|en)?|erstell(?:e|en)"
    r"?|mach(?:e|en)?|ich (?:möchte|brauche|will)|wir brauchen|"
    r"mir|uns|crea(?:r|me)?|constru(?:ye|ir)|haz(?:me)?|quiero|necesito|crée[rz]?|construis|fais|je veux|"
    r"je voudrais|j'ai besoin d(?:e|')|"
    r"crie|criar|construa|faça|quero|preciso de|an?|the|some|ein(?:e[nrms]?)?|un[ae]?|uma?|my|our|simple|basic|"
    r"small|new|einfache[nrs]?|"
    r"kleine[nrs]?|neue[nrs]?|sencill[oa]|simples?|nouve(?:au|lle)|nov[oa]|to|und|and|der|die|das|den|el|la|le|o)\s+",
    re.IGNORECASE,
)
_PROVIDER_WORD = re.compile(
    r"\b(?:open ?ai|gpt[\w.-]*(?: ?\d[\w.]*)?|chatgpt|claude|anthropic|groq|gemini|google|mistral(?: ?ai)?|"
    r"llama|ollama|deepseek|azure|bedrock|cohere)\b[ -]*(?:based|powered|basierte[nrs]?)?",
    re.IGNORECASE,
)
#: Words of the technical part of a requirement: they are carried out, not told to the model.
_TECHNICAL = re.compile(
    r"memor|remember|recall|histor|gedächtnis|erinner|merk|recuerd|record|mémoire|souvien|memória|lembr|"
    r"calculat|arithmet|rechne|c[áa]lcul|aritm|"
    r"date|time\b|uhrzeit|datum|fecha|hora\b|heure|\bdata\b|web|internet|tools?\b|werkzeug|herramient|outil|"
    r"ferrament|vector|vektor|embed|retriev|chunk|overlap|"
    r"split|paste|pasted|upload|source doc|sources?\b|citat|document|handbook|manual|polic|credential|"
    r"temperatur|température|tokens?\b|stream|nodes?\b|knoten|"
    r"gpt|claude|openai|anthropic|groq|gemini|mistral|llama|model\b|modell|modelo|modèle|moderat|refus|block|"
    r"contain|json|structured|parser|rag\b|knowledge|"
    r"(?:^|\s)use\b|using|powered|keep everything|change nothing|nothing else|otherwise|test|chatflow|flow\b|"
    r"last \w+ messages|api\b|\bpdf|i will|i'll|we will|"
    r"build|create\b|erstell|crear|créer|criar|nachrichten|mensajes|mensagens",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"^[\s,]*(?:that|which|who|der|die|das|que|qui)\s+(?:can\s+|kann\s+|puede\s+|peut\s+|pode\s+)"
    r"?(?P<clause>[^.;!?\n]+)",
    re.IGNORECASE,
)
_AND = re.compile(r",?\s+(?:and|und|y|et|e)\s+|,\s+|\s+(?:but|aber|pero|mais|mas)\s+", re.IGNORECASE)
_MAKE_IT = re.compile(
    r"\b(?:make|let|have|get)\s+(?:it|him|her|the (?:bot|assistant|agent|chatbot|flow|model|chain)|this (?:bot|"
    r"flow|chatflow|chatbot))\s+(?:to\s+)?(?P<a>[^.;!?\n]+)"
    r"|\b(?:it|he|she|the (?:bot|assistant|agent|chatbot|model|tutor))\s+(?:should|must|shall|has to|needs to|"
    r"ought to)\s+(?P<b>[^.;!?\n]+)"
    r"|\b(?:lass(?:e)? (?:ihn|es|sie|den bot)|(?:er|es|sie|der \w*bot) soll(?:te)?)\s+(?P<c>[^.;!?\n]+)"
    r"|\b(?:haz que|debe(?:ría)?|que)\s+(?P<d>(?:respond|habl|conteste|sea)\w*[^.;!?\n]*)"
    r"|\b(?:fais(?:-le)?|il (?:doit|devrait)|elle (?:doit|devrait))\s+(?P<e>[^.;!?\n]+)"
    r"|\b(?:faça com que(?: ele)?|(?:ele|ela) deve)\s+(?P<f>[^.;!?\n]+)",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"^(?:always|never|answer|reply|respond|speak|talk|be|keep|stay|act|behave|write|explain|ask|greet|avoid|"
    r"do not|don't|"
    r"antworte\w*|sprich|sei|bleib|erkläre?|immer|niemals|responde|habla|sé|siempre|nunca|réponds|parle|sois|"
    r"toujours|jamais|responda|fale|seja|sempre)\b[^\n]*",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\b(?:system[ -]?(?:prompt|message)|prompt|systemnachricht|mensaje del? sistema|message système|"
    r"mensagem (?:de|do) sistema)\b[^\"“„«'\n]{0,40}"
    r"(?:\"(?P<a>[^\"]+)\"|“(?P<b>[^”]+)”|„(?P<c>[^“”]+)[“”]|«\s*(?P<d>[^»]+?)\s*»|'(?P<e>[^'\n]{8,})'|"
    r":\s*(?P<f>[^\n]{8,}))",
    re.IGNORECASE,
)
_BE_MORE = re.compile(
    r"\b(?:be|sound|tone)\s+(?P<a>(?:more|less|very|always)\s+[^.;!?\n]+)|\b(?P<b>(?:more|less)\s+(?:polite|"
    r"friendly|formal|informal|concise|brief|detailed|helpful|funny|professional|serious|short|cheerful)"
    r"\b[^.;!?\n]*)",
    re.IGNORECASE,
)
_MAX_ROLE = 120


@dataclass(frozen=True)
class Persona:
    """`prompt` is a system prompt given word for word; `role` and `behaviour` are to be put into one."""

    role: str | None = None
    clauses: tuple[str, ...] = ()
    behaviour: tuple[str, ...] = ()
    prompt: str | None = None


def read_persona(text: str) -> Persona:
    """Role ("customer support chatbot"), what it does ("explains things simply") and how it is to behave."""
    given = _GIVEN.search(text)
    if given:
        return Persona(prompt=next(group for group in given.groups() if group).strip())
    parts = sentences(text)
    role, clauses = _role(parts[0]) if parts else (None, ())
    for part in parts[1:]:
        if role is None:
            role, clauses = _role(part)
    return Persona(role=role, clauses=clauses, behaviour=_behaviour(text, parts))


def without_lead(text: str) -> str:
    """`text` in one line, without "Please build me a simple"."""
    rest = squeeze(text)
    while (stripped := _LEAD.sub("", rest, count=1)) and stripped != rest:
        rest = stripped
    return rest


def _role(sentence: str) -> tuple[str | None, tuple[str, ...]]:
    rest = without_lead(sentence)
    match = _ROLE_BEFORE.match(rest)
    # "Add a search to the agent" speaks of an agent and describes none.
    if match is None or CHANGE.match(rest) or REMOVE.match(rest) or ADD.match(rest):
        return None, ()
    role = _PROVIDER_WORD.sub("", match.group("role"))
    behind = match.group("behind")
    purpose = _PURPOSE.match(behind)
    if purpose and not _TECHNICAL.search(purpose.group("purpose")):
        role += " " + purpose.group("purpose").strip()
        behind = behind[purpose.end() :]
    role = squeeze(re.sub(r"\b(?:my|our)\b", "the", role, flags=re.IGNORECASE)).strip(" -,")
    if role[1:2].islower() and match.start() == 0 and sentence.startswith(role[:2]):
        # A capital at the beginning of a sentence is no part of the role.
        role = role[0].lower() + role[1:]
    meaningful = [word for word in re.findall(r"[\w-]+", role.lower()) if word not in EMPTY_ROLE_WORDS]
    stopped = re.search(rf"\b(?:{_STOP})\b", match.group("role"), re.IGNORECASE)
    if not meaningful or stopped or len(role) > _MAX_ROLE:
        role = ""
    relative = _RELATIVE.match(behind) or _RELATIVE.search(behind)
    clauses = [c.strip() for c in _AND.split(relative.group("clause"))] if relative else []
    told = tuple(clause for clause in clauses if len(clause.split()) >= 2 and not _TECHNICAL.search(clause))
    if told and not role and not stopped:
        # "A bot that tells jokes": the noun alone says nothing, with the clause it does.
        role = match.group("role").split()[-1].lower()
    return role or None, told


def _behaviour(text: str, parts: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for match in _MAKE_IT.finditer(text):
        told = _AND.split(next(group for group in match.groups() if group))
        found += [wish for wish in told if not _TECHNICAL.search(wish) and len(wish.split()) >= 2]
    for match in _BE_MORE.finditer(text):
        wish = next(group for group in match.groups() if group)
        if not any(wish in other for other in found):
            found.append(f"be {wish}")
    for part in parts:
        match = _IMPERATIVE.match(part)
        if match and not _TECHNICAL.search(part):
            found.append(part)
    return tuple(dict.fromkeys(_sentence(item) for item in found))


def _sentence(text: str) -> str:
    text = squeeze(text).strip(" ,.")
    return f"{text[0].upper()}{text[1:]}." if text else ""
