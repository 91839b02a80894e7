"""`python -m flowise_dev_agent`: the command line without an installed script."""

from flowise_dev_agent.cli import main

if __name__ == "__main__":
    main()
