"""The raw data that a person gives: which format it is, or a draft of its mapping."""
