"""`python -m agentspec` is the command `agentspec`."""

from agentspec.cli.main import main

if __name__ == "__main__":
    main()
