"""What a Flowise server knows: node types and credentials, cached per instance, with a committed snapshot behind."""
