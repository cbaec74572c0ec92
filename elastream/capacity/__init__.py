"""How much a machine and an application can do: calibrate, and ramp the load."""
