"""Inside a host, and in the tasks of the edges: operators run, rows are routed and written. Imports nothing of tick/ or hosts/."""
