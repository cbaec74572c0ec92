"""Analysis of molecular dynamics, from the multi-level elasticity paper."""
