"""`elastream learn ddos`: the batch job on Spark that learns from flows of the past what is normal."""

import argparse
from pathlib import Path

from elastream.cli.console import plain_console
from elastream.errors import SettingError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", choices=["ddos"], help="the application that the model is for")
    parser.add_argument(
        "--payload", metavar="FILE", help="a CSV file of flow records; default: generated ones, without attacks"
    )
    parser.add_argument("--window", type=int, metavar="S", help="how long a window is; default: a minute")
    parser.add_argument("--model", metavar="FILE", default="ddos-model.json", help="where the model goes")
    parser.add_argument("--master", help="Spark's master; default: local")


def main(args: argparse.Namespace) -> int:
    from elastream.engine import session
    from elastream_lab.apps.ddos.learning import WINDOW_S, learn, records_in
    from elastream_lab.apps.ddos.subspace_model import encode_model

    window_s = WINDOW_S if args.window is None else args.window
    if window_s < 1:
        raise SettingError(f"--window must be 1 second or more, got {window_s}")
    if args.payload is not None and not Path(args.payload).is_file():
        raise SettingError(f"payload {args.payload}: no such file; name a CSV file of flow records")
    spark = session(args.master)
    model = learn(spark, records_in(spark, args.payload, window_s), window_s)
    Path(args.model).write_bytes(encode_model(model))
    plain_console().print(
        f"{model.windows} windows of {window_s} s: {len(model.components)} components of {len(model.mean)} features are normal; "
        f"model {args.model}",
        highlight=False,
        soft_wrap=True,
    )
    return 0
