"""What arrives in the tweets workload, and what serving a tweet takes: the same for Elastream, Flink and Storm."""

from elastream.workload import Arrivals, load_trace

TRACE, SPEED, SCALE = "covid_tweets", 15.0, 1.68
POOL, SERVICE_MS = 8, 5.0
"""The most replicas of an operator, and what each tuple takes in each."""


def tweet_arrivals(seconds: float) -> Arrivals:
    """The first `seconds` of the trace as it is played."""
    whole = load_trace(TRACE, speed=SPEED, scale=SCALE)
    if seconds >= whole.seconds:
        return whole
    kept = sum(end <= seconds for end in whole.ends_s)
    return Arrivals(whole.ends_s[:kept], whole.counts[:kept], keys=whole.keys)
