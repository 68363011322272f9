def lines(trace, m):
    return []
