"""The loop that drafts, verifies and commits. It knows tokens only: no text, no framework."""
