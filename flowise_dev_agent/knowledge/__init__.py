"""What is known of each Flowise server: node types, templates, credentials; cached, with a committed snapshot."""
