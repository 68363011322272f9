"""How much may be unknown of the ends of jobs before a mean time to failure is a range."""

# From these shares on, what is not known of the ends moves a mean time to failure more than chance does: of failures
# without an end, or jobs that ended with no result recorded; of the time at risk that is of jobs still running.
MOST_WITHOUT_END, MOST_RUNNING = 0.05, 0.5
