"""Code for the stand-ins of steps: it reads their settings and fails where Flowise does."""
