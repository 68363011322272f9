"""Windows of time into which submissions are cut, counted from the first one."""

# A month is 30 days: windows of one length can be compared.
WINDOW_S = {"day": 86_400, "week": 604_800, "month": 2_592_000}
