"""Tasks out, results in: calls of a simulator in processes, threads and clusters."""
