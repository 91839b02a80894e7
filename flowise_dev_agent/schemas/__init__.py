"""Models that packages share and that clients see: interrupts, answers, events, sessions, plans, verdicts. No I/O."""
