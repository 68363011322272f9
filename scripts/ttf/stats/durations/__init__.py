"""How long until the event: survival, mean time to failure, recurrent events."""
