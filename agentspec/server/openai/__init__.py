"""OpenAI's APIs: what clients send, read into asks; answers, written with OpenAI's own types."""
