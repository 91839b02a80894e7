"""The words by which a requirement says what it needs, in English, German, Spanish, French and Portuguese."""

import re


def _words(*alternatives: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + "|".join(alternatives) + r")(?!\w)", re.IGNORECASE)


# --- What is to be done with a flow --------------------------------------------------------------------------------

CHANGE = _words(
    r"switch\w*", r"set (?:the|its|a) [\w ]{1,30} to", r"setze", r"chang(?:e|ing)", r"replac(?:e|ing)", r"swap\w*", r"remov(?:e|ing)", r"delet(?:e|ing)", r"drop",
    r"rename", r"updat(?:e|ing)", r"upgrad(?:e|ing)", r"modif(?:y|ying)", r"edit", r"adjust", r"increase", r"decrease",
    r"reduce", r"lower", r"raise", r"keep everything else", r"keep the rest", r"nothing else", r"no longer", r"turn (?:on|off)",
    r"disconnect", r"ersetze\w*", r"ändere\w*", r"entferne\w*", r"tausche\w*", r"wechsle\w*", r"lösche\w*", r"stelle .{1,40} um",
    r"erhöhe", r"senke", r"cambi(?:a|ar|e)", r"reemplaz(?:a|ar|e)", r"sustituy\w+", r"quita\w*", r"elimin(?:a|ar|e)", r"remplac\w+",
    r"chang(?:e|er|ez)", r"supprim\w+", r"enlev\w+", r"retir\w+", r"substitu\w+", r"troc(?:a|ar|que)", r"troque", r"remov(?:a|er)", r"mud(?:a|ar|e)",
)  # fmt: skip
ADD_TO = _words(
    r"(?:add|give|connect|attach) .{1,60}?(?:to|into) (?:the|my|this|our|that) \w+", r"give (?:the|my|this|our) (?:agent|bot|chatbot|assistant|flow|chain)",
    r"füge .{1,60} hinzu", r"gib (?:dem|der) \w+", r"(?:añade|agrega|añadir|agregar) .{1,60} (?:al|a la|a mi)",
    r"(?:ajoute|ajouter|ajoutez) .{1,60} (?:au|à la|à mon)", r"(?:adicione|adicionar|acrescente) .{1,60} (?:ao|à|no|na)",
)  # fmt: skip
THIS_FLOW = _words(
    r"(?:this|that|the existing|the current|my existing|our existing|existing|the same) (?:chat ?flow|flow|chatbot|bot|agent|chain|one)",
    r"my (?:chat ?flow|flow)", r"make it", r"let it", r"have it", r"dies(?:en|er|em|es) (?:chat)?(?:flow|bot|agent\w*)", r"bestehende\w*", r"vorhandene\w*",
    r"est[ea] (?:flujo|chatflow|bot|agente)", r"existente", r"cet? (?:flux|chatflow|bot|agent)", r"existant",
    r"ess?t?[ea] (?:fluxo|chatflow|bot|agente)", r"lass ihn", r"haz que", r"fais(?:-le)?", r"faça com que",
)  # fmt: skip
CREATE = _words(
    r"build", r"create", r"make (?:me |us )?an?", r"generate an?", r"set up an?", r"i (?:want|need|would like) an?", r"new",
    r"bau(?:e|en)?", r"erstell\w*", r"erzeug\w*", r"neue[nrs]?", r"crea(?:r|me)?", r"construy\w+", r"constru\w+", r"nuev[oa]", r"créer?", r"crée",
    r"construi\w+", r"nouve(?:au|lle)", r"criar?", r"crie", r"nov[oa]",
)  # fmt: skip
COPY = _words(
    r"(?:make |create )?a (?:copy|duplicate|clone) of", r"copy (?:of )?(?:the|my|this)", r"duplicate (?:the|my|this)", r"clone (?:the|my|this)",
    r"kopier\w*", r"dupliziere\w*", r"copia(?:r)? (?:de|el|la|mi)", r"duplica\w*", r"copi(?:e|er|ez) (?:le|la|mon|de)", r"dupliqu\w+",
    r"cópia d[eoa]", r"copi(?:e|ar) (?:o|a|meu)",
)  # fmt: skip
REMOVE = _words(
    r"remov(?:e|ing|al)\b(?! background)", r"delet(?:e|ing)", r"drop", r"get rid of", r"take (?:out|away)", r"replac(?:e|ing)", r"swap\w*",
    r"disconnect", r"entferne\w*", r"lösche\w*", r"ersetze\w*", r"quita\w*", r"elimin(?:a|ar|e)", r"reemplaz(?:a|ar|e)", r"supprim\w+", r"enlev\w+",
    r"remplac\w+", r"remov(?:a|er)", r"substitu\w+",
)  # fmt: skip
QUESTION = re.compile(
    r"^\s*(?:what|which|why|how (?!about)|does|do|is|are|can you (?:tell|explain)|explain|describe|tell me (?:what|which|how|why)|"
    r"was|welche\w*|warum|wieso|wie|qué|cuál\w*|por qué|cómo|quel\w*|pourquoi|comment|que|qual|por que|como)\b",
    re.IGNORECASE,
)
FLOW = _words(r"chat ?flows?", r"flows?", r"flujos?", r"flux", r"fluxos?")

# --- Kinds of flows and parts --------------------------------------------------------------------------------------

AGENT = _words(r"agents?", r"agenten?", r"agentes?")
#: Only words that name a conversation; "bot" alone may also be a one-way thing.
CHAT = _words(
    r"chat ?bots?", r"chatbots?", r"chat", r"chats", r"conversation(?:al)?", r"assistants?", r"\w*assistent(?:in|en)?", r"asistentes?", r"assistentes?",
    r"dialog(?:ue)?", r"talks? (?:to|with)", r"unterhält\w*", r"gespräch\w*", r"conversación", r"conversa(?:r|ção)?", r"virtual (?:agent|tutor|coach)",
    r"\w*-?chatbots?", r"tutor(?:in)?", r"coach", r"companion", r"concierge", r"helper", r"help ?desk", r"receptionist",
)  # fmt: skip
ANY_BOT = _words(r"\w*-?bots?", r"\w*chatbots?", r"ai", r"ki", r"ia", r"chat ?flows?", r"flows?")
CHAIN = _words(r"chains?", r"llm ?chain", r"kette", r"cadena", r"chaîne", r"cadeia", r"one[- ]shot", r"pipeline")
MULTI_AGENT = _words(
    r"agent ?flow(?: ?v?2)?", r"multi[- ]?agents?(?: system| team)?", r"team of agents", r"supervisor (?:and|with) workers?",
    r"human[- ]in[- ]the[- ]loop", r"multiagenten?\w*", r"multi[- ]?agentes?",
)  # fmt: skip

MEMORY = _words(
    r"(?<!in )(?<!in-)memor(?:y|ies)", r"remember\w*", r"recalls?", r"(?:chat|conversation|message) history", r"follow[- ]?ups?(?: questions?)?", r"keeps? (?:the )?context",
    r"knows? what (?:i|the user|was) said", r"gedächtnis", r"erinner\w*", r"merkt sich", r"merken", r"verlauf", r"(?<!en )memoria", r"recuerd\w+", r"recordar",
    r"historial", r"(?<!en )mémoire", r"se souvien\w+", r"souvenir", r"historique", r"(?<!em )(?<!na )memória", r"lembr\w+", r"histórico",
    r"last \S+ (?:messages|turns|exchanges|interactions)",
)  # fmt: skip
SUMMARY_MEMORY = _words(
    r"summar(?:y|ies|i[sz]ing) (?:buffer )?memor(?:y|ies)", r"memor(?:y|ies) (?:that|which) summari[sz]es", r"summari[sz]es? (?:the |older |old |past |earlier |long )*(?:conversation|messages|history|chat|dialogue)\w*",
    r"(?:conversation|chat|running|rolling) summar(?:y|ies)", r"zusammenfass\w+ (?:des|der) (?:bisherigen )?(?:gesprächs?|unterhaltung|verlaufs?)", r"zusammenfassungs?-?(?:speicher|gedächtnis)",
    r"memoria (?:de|con) resumen", r"resumen de la conversación", r"mémoire (?:par|avec|de) résumé", r"résumé de la conversation", r"memória (?:de|com) resumo", r"resumo da conversa",
)  # fmt: skip
BUFFER_MEMORY = _words(r"buffer memory", r"(?:whole|full|entire|complete) (?:conversation|chat|history)")
WINDOW_MEMORY = _words(
    r"window(?:ed)? memory",
    r"buffer window(?: memory)?",
    r"memory window",
    r"sliding window",
    r"fenster-?(?:speicher|gedächtnis)",
    r"memoria de ventana",
    r"mémoire (?:à )?fenêtre",
    r"memória de janela",
)
NAMED_MEMORY = (
    (_words(r"redis[- ](?:backed )?(?:chat )?memory", r"memory (?:in|on|with) redis"), "RedisBackedChatMemory"),
    (_words(r"mem0"), "mem0"),
    (_words(r"zep(?: memory)?"), "ZepMemory"),
)

RAG = _words(
    r"rag", r"retriev\w*", r"knowledge ?base", r"vector(?:s|[ -]?stores?|[ -]?databases?)?", r"embeddings?", r"question[- ]answering (?:over|about|on|for|from)", r"q ?& ?a (?:over|about|on|for|from)",
    r"qna (?:over|about|on|for|from)", r"chat with (?:my|our|your|the|a|these|this) (?:\w+ )?(?:documents?|docs|pdfs?|files?|text|data|notes|book|manual|handbook|website)",
    r"source documents?", r"cite\w* (?:its |the )?sources?", r"chunks?", r"split (?:it |them )?into", r"wissensdatenbank", r"vektor\w*", r"quelldokumente?", r"quellen",
    r"base de conocimientos?", r"base de connaissances", r"base de conhecimento", r"documentos? (?:de )?(?:fuente|origen|fonte)", r"documents sources?", r"fragmentos de", r"morceaux de", r"pedaços de", r"trechos de",
    r"vectoriel\w*", r"vectorial\w*", r"vetorial\w*",
)  # fmt: skip
_DOCUMENT = (
    r"(?:polic(?:y|ies)|handbooks?|manuals?|documents?|docs|documentation|faqs?|guides?|guidelines|catalogu?es?|contracts?|texts?|articles?|books?|notes|reports?|wiki|files?|pdfs?|"
    r"website|web ?pages?|transcripts?|terms|price ?lists?|brochures?|menus?|papers?|regulations|"
    r"\w*richtlinien?|\w*handbuch(?:es|s)?|\w*dokument(?:e|en|s)?|\w*texte?[sn]?|\w*vertr[aä]ge?s?|anleitung(?:en)?|\w*bedingungen|"
    r"políticas?|manual(?:es)?|documentos?|textos?|contratos?|guías?|catálogos?|"
    r"politiques?|manuels?|règlements?|textes?|contrats?|"
    r"manuais|regulamentos?|guias?)"
)
ABOUT_DOCUMENTS = re.compile(
    r"(?:question|answer|ask|quer(?:y|ies)|look|search|base|inform|know|frage|antwort|beantwort|auskunft|pregunt|respond|consult|répon|interrog|pergunt)\w*"
    r"[^.;!?\n]{0,40}?\b(?:about|over|on|from|in|using|with|to|through|within|zu|über|aus|in|anhand|mit|sobre|de|del|desde|con|sur|du|des|dans|avec|do|da|dos|em|com)\s+"
    r"(?:our|my|the|a|an|this|these|your|some|unser\w*|mein\w*|der|die|das|dem|den|einem?r?|dies\w*|nuestr[oa]s?|mis?|el|la|los|las|un[ae]?|est[ea]|notre|nos|mon|mes|le|les|l['’]|cette?|nosso|nossa|meu|minha|o|os|as|uma?|ess?e)?\s*"
    r"(?P<topic>(?:[\w'’-]+\s+){0,4}?" + _DOCUMENT + r")\b",
    re.IGNORECASE,
)
PROMISE = re.compile(
    r"\b(?:i(?:'ll| will| am going to|'m going to| can| would like to)|we(?:'ll| will| are going to)|to be|will be)\s+"
    r"(?:\w+\s+){0,2}?(?:paste|pasted|provide|provided|upload|uploaded|add|added|send|insert|attach|give|supply|fill|supplied|filled)\b[^.;!?\n]{0,60}"
    r"|\b(?:pasted|provided|copied|uploaded)[ -](?:in )?(?:text|document|content|policy|handbook|manual|faq|article)s?\b|\btext (?:that )?(?:i|we|the user) (?:paste|provide)s?\b|\btext to follow\b"
    r"|\b(?:füge|werde|kopiere|liefere|reiche)\b[^.;!?\n]{0,50}\b(?:ein|einfügen|kopieren|nach|nachreichen|liefern|hineinkopieren)\b|\beingefügte\w*\s+\w+"
    r"|\b(?:pegaré|voy a pegar|pondré|añadiré|pego|proporcionaré)\b[^.;!?\n]{0,50}|\b(?:texto|documento) pegad[oa]\b"
    r"|\b(?:je (?:vais )?(?:coller(?:ai)?|fournir(?:ai)?|ajouter(?:ai)?|colle))\b[^.;!?\n]{0,50}|\b(?:texte|document) collé\b"
    r"|\b(?:vou colar|colarei|vou fornecer|fornecerei|adicionarei)\b[^.;!?\n]{0,50}|\b(?:texto|documento) colad[oa]\b",
    re.IGNORECASE,
)
SPLIT = _words(
    r"split\w*", r"chunk\w*", r"pieces? of \d+", r"abschnitte?", r"stücke", r"zerleg\w*", r"aufgeteilt", r"fragmentos?", r"trozos?", r"divid\w+", r"morceaux", r"découp\w+", r"pedaços?", r"trechos?", r"overlap\w*",
)  # fmt: skip
SPLITTERS = (
    (_words(r"markdown (?:text )?split\w*"), "markdownTextSplitter"),
    (_words(r"token (?:text )?split\w*", r"(?:chunks? of )?\d+[ -]tokens?(?: chunks?)?"), "tokenTextSplitter"),
    (_words(r"(?<!recursive )character (?:text )?splitter"), "characterTextSplitter"),
)
SOURCES = _words(
    r"source documents?", r"sources?", r"citations?", r"cite\w*", r"references? (?:for|with) (?:the |each )?answer", r"quell(?:en|dokumente?)", r"fuentes?", r"documents? sources?", r"fontes?", r"where (?:the|its) answer (?:comes|came) from",
)  # fmt: skip
VECTOR_STORES = tuple(
    (_words(words), node)
    for words, node in (
        (r"faiss", "faiss"), (r"pinecone", "pinecone"), (r"chroma(?:db)?", "chroma"), (r"qdrant", "qdrant"), (r"weaviate", "weaviate"),
        (r"pg ?vector|postgres(?:ql)?(?: vector\w*)?", "postgres"), (r"supabase", "supabase"), (r"milvus", "milvus"), (r"elastic ?search", "elasticsearch"),
        (r"open ?search", "openSearch"), (r"mongo ?db(?: atlas)?", "mongoDBAtlas"), (r"redis vector\w*", "redis"), (r"upstash vector", "upstash"),
        (r"single ?store", "singlestore"), (r"meili ?search", "meilisearch"), (r"couchbase", "couchbase"), (r"astra(?: ?db)?", "Astra"), (r"vectara", "vectara"),
    )
)  # fmt: skip
BESIDES = _words(
    r"chats? (?:normally|freely) otherwise", r"otherwise (?:it )?(?:chats?|answers?|talks?|just)", r"(?:as|with|through|via|using|by) an? (?:\w+ )?tool", r"retriever tool", r"retrieval tool", r"tool", r"tools",
    r"werkzeuge?s?", r"herramientas?", r"outils?", r"ferramentas?", r"else (?:it )?chats?",
)  # fmt: skip

# --- Tools ---------------------------------------------------------------------------------------------------------

#: (words, node names in order of preference)
TOOLS = (
    (
        _words(r"calculat(?:or|e|es|ing|ions?)", r"arithmetics?", r"(?:do|does|doing) (?:the )?(?:math|maths|sums)", r"compute\w*", r"(?:basic )?math operations", r"(?:taschen)?rechner", r"rechne[nt]?", r"ausrechnen", r"berechn\w+",
               r"calculadora", r"calcul(?:a|ar|e)", r"cálculos?", r"aritmética", r"calculatrice", r"calculs?", r"calculer?", r"arithmétique"),
        ("calculator",),
    ),
    (
        _words(r"(?:current|today'?s|present|actual) (?:date|time|day)(?: and (?:date|time))?", r"date and time", r"date and the time", r"time and date", r"(?:what|which) (?:day|date|time) it is", r"what time it is", r"knows? (?:the )?(?:date|time|day)",
               r"today'?s date", r"clock", r"(?:aktuelle[ns]?|heutige[ns]?) (?:datum|uhrzeit|zeit|tag)", r"datum und (?:die )?uhrzeit", r"uhrzeit", r"wie spät es ist", r"fecha (?:y hora|actual|de hoy)", r"(?:la )?hora (?:actual|y fecha)", r"qué (?:día|hora) es",
               r"date (?:et l['’]?heure|actuelle|du jour|d['’]aujourd['’]hui)", r"l['’]?heure (?:actuelle|qu['’]il est)", r"data (?:e (?:a )?hora|atual|de hoje)", r"hora(?:s)? (?:atual|certa)", r"que (?:dia|horas) (?:é|são)"),
        ("currentDateTime",),
    ),
    (_words(r"serp ?api"), ("serpAPI",)),
    (_words(r"serper"), ("serper",)),
    (_words(r"brave(?: search)?"), ("braveSearchAPI",)),
    (_words(r"google (?:custom )?search(?: engine)?"), ("googleCustomSearch", "serpAPI", "serper")),
    (_words(r"tavily"), ("tavilyAPI",)),
    (_words(r"exa(?: search)?"), ("exaSearch",)),
    (_words(r"sear ?x(?:ng)?"), ("searXNG",)),
    (_words(r"wolfram(?: ?alpha)?"), ("wolframAlpha",)),
    (_words(r"arxiv", r"(?:scientific|research|academic) papers? search", r"search (?:for )?(?:scientific|research|academic) papers?"), ("arxiv",)),
    (_words(r"scrap(?:e|es|ing) (?:a |the )?(?:web ?(?:sites?|pages?)|urls?)", r"web ?scrap(?:er|ing)", r"read(?:s)? (?:the content of )?(?:web ?(?:sites?|pages?)|urls?|links?)"), ("webScraperTool",)),
    (
        _words(r"(?:search|searches|searching|browse|browses|look(?:s)? (?:things |it )?up) (?:on |in |for \w+ on )?(?:the )?(?:web|internet|online)", r"(?:web|internet|online)[ -]?search(?:es|ing)?", r"(?:latest|current|recent) news", r"websuche",
               r"(?:im|das) (?:web|internet) (?:durch)?such\w*", r"internetsuche", r"sucht im (?:web|internet)", r"busca\w* en (?:la web|internet|línea)", r"búsqueda (?:web|en internet)", r"recherche\w* (?:sur|dans) (?:le web|internet)", r"recherche (?:web|internet)",
               r"pesquis\w+ na (?:web|internet)", r"busca (?:na|pela) (?:web|internet)"),
        ("serpAPI", "braveSearchAPI", "serper", "googleCustomSearch", "exaSearch"),
    ),
)  # fmt: skip

# --- One text in, one text out -------------------------------------------------------------------------------------

TRANSLATE = _words(r"translat\w*", r"übersetz\w*", r"traduc\w*", r"traduz\w*", r"tradui\w*", r"tradu(?:ção|ções)")
TRANSFORMS = (
    TRANSLATE,
    _words(r"summari[sz]\w*", r"summar(?:y|ies)", r"tl;?dr", r"condens\w+", r"zusammenfass\w*", r"fasst? .{1,60} zusammen", r"resum\w*", r"résum\w*"),
    _words(r"rewrit\w+", r"rephras\w+", r"paraphras\w+", r"proofread\w*", r"correct(?:s|ing)? (?:the )?(?:grammar|spelling|mistakes|errors|text)", r"grammar", r"polish(?:es)?", r"simplif\w+", r"shorten\w*", r"umformulier\w*", r"korrigier\w*", r"reescrib\w+", r"corrig\w+", r"reformul\w+", r"reescrev\w+"),
    _words(r"classif(?:y|ies|ying|ication)", r"categori[sz]\w+", r"label(?:s|ling)?", r"sentiment\w*", r"klassifizier\w*", r"kategorisier\w*", r"clasific\w+", r"classifi(?:e|er|ez)", r"clasificación", r"classific\w+"),
    _words(r"extract\w*", r"extrahier\w*", r"extra(?:er|e|iga)", r"extrai\w*", r"extra(?:ire|it|yez)"),
    _words(r"(?:(?:generat|writ|draft|compos|suggest|invent)(?:e|es|ing|s)?|creat(?:es|ing)|produc(?:es|ing)) (?:(?!that|which|who|chat|bot)[\w-]+ ){0,3}?(?:slogans?|taglines?|headlines?|poems?|haikus?|stor(?:y|ies)|e-?mails?|product (?:names?|descriptions?)|descriptions?|captions?|posts?|tweets?|titles?|jokes?|names?|outlines?|quiz\w*)",
           r"(?:schreib|erstell|erzeug|generier|erfind)\w* (?:\w+ )*?(?:slogans?|gedichte?|e-?mails?|produktnamen?|beschreibung\w*|überschrift\w*|texte?)"),
    _words(r"convert\w*", r"turns? .{1,50} into", r"transform\w*", r"wandelt? .{1,50} (?:in|um)", r"convier\w+", r"converti\w*", r"convert[ea]\w*"),
)  # fmt: skip
TARGET_LANGUAGE = re.compile(
    r"\b(?:in)?to (?P<en>[A-Z][a-zé]+)\b|\b(?:ins|nach|in) (?P<de>[A-Z][a-zäöü]+(?:isch|e|n))\b|"
    r"\b(?:al|a) (?P<es>(?:ingl|franc|alem|espa|ital|portug|chin|japon|rus|neerl|cat)\w+)\b|"
    r"\b(?:en|vers l['’]?e?) ?(?P<fr>(?:angl|alle|esp|ital|portug|chin|japon|russ|néerl|franç)\w+)\b|"
    r"\b(?:para|em|ao?) (?:o )?(?P<pt>(?:ingl|franc|alem|espan|ital|portug|chin|japon|russ)\w+)\b"
)

# --- Moderation ----------------------------------------------------------------------------------------------------

REFUSE = _words(
    r"refus\w+", r"rejects?", r"rejected", r"block\w*", r"den(?:y|ies)", r"forbid\w*", r"ban(?:s|ned)?", r"filter(?:s|ed|ing)?(?: out)?", r"moderat\w+", r"disallow\w*", r"stops?", r"do(?:es)?(?: not|n['’]t) (?:accept|allow|process)", r"never (?:accepts?|answers?|lets?)", r"verweiger\w*", r"ablehn\w*",
    r"lehnt .{0,80}ab", r"blockier\w*", r"sperr\w*", r"rechaz\w+", r"bloque\w*", r"rejette\w*", r"refuse\w*", r"bloqu\w+", r"rejeit\w+", r"recus\w+",
)  # fmt: skip
DENIED_WORDS = re.compile(
    r"\b(?:words?|phrases?|terms?|contain(?:s|ing)?|mention(?:s|ing)?|including|wörter[n]?|wort(?:e|en)?|begriffe?n?|enthalt\w*|palabras?|conten\w+|contien\w+|mots?|palavras?|contê\w+|contenha\w*)\b",
    re.IGNORECASE,
)
WORD_LIST = re.compile(
    r"(?:words?|phrases?|terms?|mention(?:s|ing)?|wörter[n]?|worte?n?|begriffe?n?|palabras?|mots?|palavras?)\s*:?\s+"
    r"(?P<list>[\w' -]+(?:,\s*[\w' -]+)*(?:,?\s+(?:or|and|oder|und|o|y|ou|et|e)\s+[\w'-]+)?)",
    re.IGNORECASE,
)
CONTENT_MODERATION = _words(
    r"openai moderation",
    r"moderation(?: api)?",
    r"(?:harmful|toxic|offensive|abusive|unsafe|hateful|inappropriate) (?:content|messages?|language|input|questions)",
)

# --- Requested node types ------------------------------------------------------------------------------------------

NODE_WORD = r"(?:nodes?|components?|knoten|komponente|nodos?|componente|nœuds?|nó|nós)"
NAMED_NODE = re.compile(
    rf"\b{NODE_WORD}\s+(?:type\s+)?(?:called|named|namens|llamado|nommé|appelé|chamado)?\s*[\"'`“”„«]\s*(?P<a>[\w .-]{{2,60}}?)\s*[\"'`“”»]"
    rf"|[\"'`“”„«]\s*(?P<b>[\w .-]{{2,60}}?)\s*[\"'`“”»]\s*-?{NODE_WORD}\b"
    rf"|\b(?P<c>[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z][a-z]+(?:[A-Z][A-Za-z0-9]*)+)\s+{NODE_WORD}\b"
    rf"|\b{NODE_WORD}\s+(?:called |named )?(?P<d>[a-z]+(?:[A-Z][a-z0-9]*)+)\b",
)
CAMEL_CASE = re.compile(r"\b[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+\b")
INDEX_NAME = re.compile(
    r"\b(?:index|collection|table|namespace|bucket|database|tabelle|sammlung|índice|colección|tabla|coleção|tabela)\s+"
    r"(?:called\s+|named\s+)?[\"'“„«`]?([\w.-]+)",
    re.IGNORECASE,
)
