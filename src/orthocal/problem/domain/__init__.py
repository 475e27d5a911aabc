"""Where the simulator is judged: boxes, points and labels, with nodes and weights."""
