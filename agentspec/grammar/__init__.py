"""What the output must look like: schemas, regexes, grammars and tool calls, as cursors over tokens."""
