"""The pages of a study: of each trace, of their comparison, and on paper."""
