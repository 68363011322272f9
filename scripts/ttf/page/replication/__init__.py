"""Published findings: what was printed, what the data give, and whether the print agrees with itself."""
