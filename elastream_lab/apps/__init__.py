"""Applications of the papers and of other benchmarks. Arrivals enter; a topology leaves."""
