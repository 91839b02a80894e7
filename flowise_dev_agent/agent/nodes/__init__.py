"""The bodies of the 18 nodes, a file per phase. Each takes the state and the run's context and returns an update."""
