"""Time to Failure: the code behind the rule scripts, imported from the checkout and never installed."""
