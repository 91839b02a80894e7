"""Access to the service and its record: keys, sign-in, share links, audit log."""
