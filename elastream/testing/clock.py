"""A clock that stands still until it is told."""


class ManualClock:
    """Call it for the time; `advance` moves it."""

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
