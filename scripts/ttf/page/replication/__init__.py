"""Published findings: compared with the data, and checked for internal consistency."""
