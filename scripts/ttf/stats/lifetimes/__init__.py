"""Models of durations by likelihood: exponential, Weibull, lognormal, gamma, and Weibull with frailty."""
