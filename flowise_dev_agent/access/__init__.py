"""Who may do what, and who did what: keys, sign-in, share links, audit log."""
