"""The graph as `langgraph.json` names it: for LangGraph Studio and `langgraph dev`, which bring a saver of their own.

    pip install "langgraph-cli[inmem]" && langgraph dev

It is drawn there, with its state and context. A run needs the context that the service makes for a session.
"""

from flowise_dev_agent.agent import build_graph
from flowise_dev_agent.agent.domains.installed import installed_domains

graph = build_graph(installed_domains())
