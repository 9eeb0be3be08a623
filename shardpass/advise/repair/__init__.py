"""Programs with explicit axes, whose types say shardings: what to write in them, and what to leave out."""
