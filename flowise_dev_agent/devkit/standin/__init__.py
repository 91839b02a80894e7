"""A local stand-in for model providers: Anthropic messages, OpenAI chat completions and embeddings over real HTTP.

It is no model. It answers by simple rules, or by what a test scripts, and says that it is a stand-in wherever it can.
"""

from flowise_dev_agent.devkit.standin.protocol import Failure, Message, RecordedRequest, Reply, ToolCall, ToolSpec
from flowise_dev_agent.devkit.standin.server import ModelStandIn

__all__ = ["Failure", "Message", "ModelStandIn", "RecordedRequest", "Reply", "ToolCall", "ToolSpec"]
