"""The domains that the agent can work in, a file each."""
