"""The fixed words of a plan in the languages of the page: headings, and what an approval allows."""

from collections.abc import Mapping
from typing import Final

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "de": {
        "Document stores": "Dokumentenspeicher",
        "pieces of {}: {}, at most {} characters each": "Abschnitte aus {}: {}, je höchstens {} Zeichen",
        "added to the store that exists": "kommen zum vorhandenen Speicher hinzu",
        "embedded with {} in {}": "eingebettet mit {} in {}",
        "flows that use it: {}": "Flows, die ihn benutzen: {}",
        "a rollback leaves them in the vector store": "beim Zurücknehmen bleiben sie im Vektorspeicher",
        "embedded with {} in {}, as the store {}": "eingebettet mit {} in {}, wie der Speicher {}",
        "kept in memory by the flow": "vom Flow im Arbeitsspeicher gehalten",
        "This cannot be built": "Das lässt sich nicht bauen",
        "One question first": "Zuerst eine Frage",
        "Nodes": "Knoten",
        "Values": "Werte",
        "Removed or replaced": "Entfernt oder ersetzt",
        "Kept as it is": "Bleibt, wie es ist",
        "Please check": "Bitte prüfen",
        "Assumed": "Angenommen",
        "Not done": "Nicht umgesetzt",
        "What an approval allows": "Was eine Freigabe erlaubt",
        "Steps": "Schritte",
        "Approaches": "Lösungswege",
        "Credentials": "Zugangsdaten",
        "Personal data": "Personenbezogene Daten",
        "Data that passes": "Daten, die weitergegeben werden",
        "personal data": "personenbezogen",
        "Placeholders to fill in": "Noch auszufüllende Platzhalter",
        "Success criteria": "Erfolgskriterien",
        "Test questions": "Testfragen",
        "of": "von",
        "now": "jetzt",
        "then": "danach",
        "(empty)": "(leer)",
        "The text that is there now goes.": "Der Text, der jetzt dort steht, entfällt.",
        "not understood": "nicht verstanden",
        "no reason was given": "ohne Angabe von Gründen",
        "not tested": "nicht getestet",
        "Flowise calls {}.": "Flowise ruft {} auf.",
        "The node `{}` runs code.": "Der Knoten `{}` führt Code aus.",
        "The node `{}` gets the tool {}.": "Der Knoten `{}` erhält das Werkzeug {}.",
        "A credential of the type `{}` is used.": "Zugangsdaten vom Typ `{}` werden verwendet.",
        "The node `{}` may use a credential of the type `{}`.": (
            "Der Knoten `{}` darf Zugangsdaten vom Typ `{}` verwenden."
        ),
        "Documents are written to a document store.": "Dokumente werden in einen Dokumentenspeicher geschrieben.",
        "A credential is created in Flowise.": "In Flowise werden Zugangsdaten angelegt.",
        "Documents are written to the vector store `{}`.": "Dokumente werden in den Vektorspeicher `{}` geschrieben.",
    },
    "fr": {
        "Document stores": "Magasins de documents",
        "pieces of {}: {}, at most {} characters each": "passages de {} : {}, {} caractères au plus chacun",
        "added to the store that exists": "ajoutés au magasin existant",
        "embedded with {} in {}": "vectorisés avec {} dans {}",
        "flows that use it: {}": "flux qui l'utilisent : {}",
        "a rollback leaves them in the vector store": "une annulation les laisse dans le magasin de vecteurs",
        "embedded with {} in {}, as the store {}": "vectorisés avec {} dans {}, comme le magasin {}",
        "kept in memory by the flow": "gardés en mémoire par le flux",
        "This cannot be built": "Ceci ne peut pas être construit",
        "One question first": "D'abord une question",
        "Nodes": "Nœuds",
        "Values": "Valeurs",
        "Removed or replaced": "Supprimé ou remplacé",
        "Kept as it is": "Conservé tel quel",
        "Please check": "À vérifier",
        "Assumed": "Supposé",
        "Not done": "Non réalisé",
        "What an approval allows": "Ce que permet une approbation",
        "Steps": "Étapes",
        "Approaches": "Approches",
        "Credentials": "Identifiants",
        "Personal data": "Données personnelles",
        "Data that passes": "Données transmises",
        "personal data": "données personnelles",
        "Placeholders to fill in": "Emplacements à remplir",
        "Success criteria": "Critères de réussite",
        "Test questions": "Questions de test",
        "of": "de",
        "now": "maintenant",
        "then": "ensuite",
        "(empty)": "(vide)",
        "The text that is there now goes.": "Le texte actuel disparaît.",
        "not understood": "non compris",
        "no reason was given": "aucune raison donnée",
        "not tested": "non testé",
        "Flowise calls {}.": "Flowise appelle {}.",
        "The node `{}` runs code.": "Le nœud `{}` exécute du code.",
        "The node `{}` gets the tool {}.": "Le nœud `{}` reçoit l'outil {}.",
        "A credential of the type `{}` is used.": "Un identifiant de type `{}` est utilisé.",
        "The node `{}` may use a credential of the type `{}`.": (
            "Le nœud `{}` peut utiliser un identifiant de type `{}`."
        ),
        "Documents are written to a document store.": "Des documents sont écrits dans un magasin de documents.",
        "A credential is created in Flowise.": "Un identifiant est créé dans Flowise.",
        "Documents are written to the vector store `{}`.": "Des documents sont écrits dans la base vectorielle `{}`.",
    },
    "es": {
        "Document stores": "Almacenes de documentos",
        "pieces of {}: {}, at most {} characters each": "fragmentos de {}: {}, de {} caracteres como máximo",
        "added to the store that exists": "se añaden al almacén existente",
        "embedded with {} in {}": "vectorizados con {} en {}",
        "flows that use it: {}": "flujos que lo usan: {}",
        "a rollback leaves them in the vector store": "al deshacer se quedan en el almacén de vectores",
        "embedded with {} in {}, as the store {}": "vectorizados con {} en {}, como el almacén {}",
        "kept in memory by the flow": "el flujo los guarda en memoria",
        "This cannot be built": "Esto no se puede construir",
        "One question first": "Primero, una pregunta",
        "Nodes": "Nodos",
        "Values": "Valores",
        "Removed or replaced": "Eliminado o sustituido",
        "Kept as it is": "Se mantiene como está",
        "Please check": "Por revisar",
        "Assumed": "Supuesto",
        "Not done": "No se hará",
        "What an approval allows": "Lo que permite una aprobación",
        "Steps": "Pasos",
        "Approaches": "Enfoques",
        "Credentials": "Credenciales",
        "Personal data": "Datos personales",
        "Data that passes": "Datos que se transmiten",
        "personal data": "datos personales",
        "Placeholders to fill in": "Espacios por completar",
        "Success criteria": "Criterios de éxito",
        "Test questions": "Preguntas de prueba",
        "of": "de",
        "now": "ahora",
        "then": "después",
        "(empty)": "(vacío)",
        "The text that is there now goes.": "El texto actual desaparece.",
        "not understood": "no entendido",
        "no reason was given": "sin motivo indicado",
        "not tested": "no probado",
        "Flowise calls {}.": "Flowise llama a {}.",
        "The node `{}` runs code.": "El nodo `{}` ejecuta código.",
        "The node `{}` gets the tool {}.": "El nodo `{}` recibe la herramienta {}.",
        "A credential of the type `{}` is used.": "Se usa una credencial del tipo `{}`.",
        "The node `{}` may use a credential of the type `{}`.": "El nodo `{}` puede usar una credencial del tipo `{}`.",
        "Documents are written to a document store.": "Se escriben documentos en un almacén de documentos.",
        "A credential is created in Flowise.": "Se crea una credencial en Flowise.",
        "Documents are written to the vector store `{}`.": "Se escriben documentos en el almacén vectorial `{}`.",
    },
}


def in_language(words: str, language: str, *values: str) -> str:
    """The words in a language (ISO 639-1), in English where they are not known in it, with values for `{}`."""
    known = WORDS.get(language, {}).get(words, words)
    return known.format(*values) if values else known


def without_section(text: str, heading: str) -> str:
    """The Markdown of a plan without a section, in whichever language it is written."""
    headings = {f"## {in_language(heading, language)}" for language in ("en", *WORDS)}
    kept: list[str] = []
    leaves = False
    for line in text.splitlines():
        if line.startswith("#"):
            leaves = line in headings
        if not leaves:
            kept.append(line)
    return "\n".join(kept)
