"""What a flow and its ops are made of: graph, nodes, schemas, values, findings."""
