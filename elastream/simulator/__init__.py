"""The same control loop on a model in virtual time. A graph, a profile and a workload enter; a record as of a run leaves."""
