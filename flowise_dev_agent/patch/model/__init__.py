"""Data model of flows and ops: graph, nodes, schemas, values, findings."""
