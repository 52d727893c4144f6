"""The endpoint: one process that OpenAI's and Anthropic's clients can talk to."""
