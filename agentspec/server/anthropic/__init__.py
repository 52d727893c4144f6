"""Anthropic's API: `/v1/messages`."""
