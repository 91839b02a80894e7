"""A local stand-in for model providers: Anthropic messages, OpenAI chat completions and embeddings over real HTTP.

It is not a model. It answers by simple rules or by the scripts of a test, and identifies itself as a stand-in.
"""
# pyright: reportUnusedImport=false

from flowise_dev_agent.devkit.standin.protocol import (
    RecordedRequest,
    Reply,
    StandInFailure,
    StandInMessage,
    StandInToolCall,
    ToolSpec,
)
from flowise_dev_agent.devkit.standin.server import ModelStandIn
