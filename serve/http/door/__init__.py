"""What every request meets before its route: keys, rates, limits, the log."""
