"""Detection of denial-of-service attacks, from the multi-level elasticity paper."""
