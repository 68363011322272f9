"""Windows of time for submissions, counted from the first one."""

# A month is 30 days, so that windows have equal lengths.
WINDOW_S = {"day": 86_400, "week": 604_800, "month": 2_592_000}
