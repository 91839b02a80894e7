"""Access, audit, health, instances and catalogues: the subjects beside sessions and flows."""
