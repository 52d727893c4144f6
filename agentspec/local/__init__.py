"""The public engine: text in, text out, in this process."""
