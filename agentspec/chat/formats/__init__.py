"""Tool-call formats, one file a family."""
