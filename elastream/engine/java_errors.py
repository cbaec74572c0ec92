"""What went wrong in Spark's Java, in a line or two: an exception with its stack enters, the reasons leave."""


def java_reason(error: BaseException) -> str:
    """What was thrown first and what caused it last."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in said if not line.startswith(("at ", "... ", "An error occurred while calling"))]
    causes = [line for line in named if line.startswith("Caused by: ")]
    first = (named or said or [type(error).__name__])[0].removeprefix(": ")
    return "; ".join([first, *(cause[0].lower() + cause[1:] for cause in causes[-1:])])
