"""Read the logs of nodes: which layout a file has, its lines, and the errors that the rules pick from them."""
