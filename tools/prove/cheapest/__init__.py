"""What ``tools.prove.optimum`` is made of: small programs, their choices, and the cheapest of these."""
