"""What speculation is worth on recorded traces."""
