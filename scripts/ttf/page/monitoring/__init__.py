"""The numbers of a study for monitoring tools: a file of metrics, and alert rules on them."""
