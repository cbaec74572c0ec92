"""Lane queues: the slices that wait in front of each replica, first in, first out."""

from collections import deque
from collections.abc import Iterator

from elastream.lanes.segments import Slice


class LaneQueue:
    """One lane. `appended` and `consumed` count tuples since the base began, so their difference waits."""

    def __init__(self, consumed: int = 0, slices: "deque[Slice] | None" = None) -> None:
        self.slices: deque[Slice] = slices or deque()
        self.consumed = consumed
        self.appended = consumed + sum(piece.rows for piece in self.slices)

    def __len__(self) -> int:
        """The tuples that wait."""
        return self.appended - self.consumed

    def append(self, piece: Slice) -> None:
        self.slices.append(piece)
        self.appended += piece.rows

    def peek(self, rows: int) -> Iterator[Slice]:
        """The first `rows` tuples, without taking them."""
        for piece in self.slices:
            if rows <= 0:
                return
            yield piece if piece.rows <= rows else piece._replace(rows=rows)
            rows -= piece.rows

    def portion(self, rows: int, size: int) -> int:
        """How many of the first `rows` tuples lie in batches of together no more than `size` bytes, or in the first."""
        taken = 0
        for piece in self.slices:
            size -= piece.length
            if taken >= rows or (taken and size < 0):
                break
            taken += piece.rows
        return min(taken, rows)

    def give_up(self, groups: frozenset[int]) -> list[Slice]:
        """Take the tuples of these key groups out, wherever they stand; what the queue keeps stays in its order."""
        taken: list[Slice] = []
        kept: deque[Slice] = deque()
        for piece in self.slices:
            if not piece.runs:
                kept.append(piece)
                continue
            for goes, part in piece.moved_to(groups.__contains__):
                (taken if goes else kept).append(part)
        if taken:
            self.slices = kept
            self.appended -= sum(piece.rows for piece in taken)
        return taken

    def consume(self, rows: int) -> list[Slice]:
        """Take the first `rows` tuples; gives the slices of which nothing waits any more."""
        if rows > len(self):
            raise ValueError(f"consume {rows} of {len(self)} tuples")
        self.consumed += rows
        done: list[Slice] = []
        while rows > 0:
            head = self.slices[0]
            if head.rows <= rows:
                done.append(self.slices.popleft())
                rows -= head.rows
            else:
                self.slices[0] = head._replace(first=head.first + rows, rows=head.rows - rows)
                rows = 0
        return done
