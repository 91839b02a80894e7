"""Layout: positions and sizes of nodes on the canvas."""
