"""What went wrong in Spark, in a line: an exception with its stack enters, the reasons leave."""

import re

from py4j.protocol import Py4JNetworkError

GONE = "Spark has ended: its Java process or its context is gone; start again with the same base"

_PYTHON = re.compile(r"(?:[a-z_][\w]*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt): .*")
_JAVA = ("org.", "java.", "scala.", "com.", "pyspark.")


def is_gone(error: BaseException) -> bool:
    """True when an error says that nobody answers at Spark's end."""
    return isinstance(error, Py4JNetworkError | ConnectionError | EOFError)


def java_reason(error: BaseException) -> str:
    """What was thrown first and what caused it last; of a Python worker, what the user's function raised."""
    text = str(error)
    while (cause := getattr(error, "cause", None)) is not None:
        # What PySpark keeps apart from the message.
        text, error = f"{text}\nCaused by: {cause}", cause
    said = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in said if not line.startswith(("at ", "... ", "An error occurred while calling"))]
    causes = [line for line in named if line.startswith("Caused by: ")]
    raised = [line for line in named if _PYTHON.fullmatch(line) and not line.startswith(_JAVA)]
    first = (named or said or [type(error).__name__])[0].removeprefix(": ")
    last = raised[-1:] if raised and raised[-1] != first else [cause[0].lower() + cause[1:] for cause in causes[-1:]]
    return "; ".join([first, *last])
