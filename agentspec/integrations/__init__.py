"""What agentspec adds to other frameworks, whichever model they use."""
