"""The laboratory: applications, benchmarks, rival policies, chaos. The product never imports it."""
