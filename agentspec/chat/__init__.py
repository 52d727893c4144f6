"""Text around tokens: messages to prompts, output to messages, stop strings, streams."""
