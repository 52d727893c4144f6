"""Readers of recorded rows, one shape a file."""
