"""How much may be unknown of the ends of jobs before a mean time to failure is a range."""

# Above these shares, unknown ends change a mean time to failure more than random variation does: failures without an
# end or jobs that ended with no result recorded; time at risk of jobs still running.
MOST_WITHOUT_END, MOST_RUNNING = 0.05, 0.5
