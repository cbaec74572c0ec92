"""A text enters, its words leave: long lists are easier to read without quotes and commas."""


def words(text: str, mark: str | None = None) -> tuple[str, ...]:
    """Parted by `mark`, else by space."""
    return tuple(text.split(mark))
