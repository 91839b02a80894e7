"""Knowledge of Flowise servers: node types, templates, credentials; cached, with a committed snapshot."""
