"""Event time: watermarks, timers and the times of sources."""
