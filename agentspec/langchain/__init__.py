"""What `ChatAgentSpec` is made of: messages, calls, structured output, and the engines that models share."""
