"""`elastream models DIR`: what AuTraScale has learned of applications; one model, or one less."""

import argparse

from rich.table import Table

from elastream.cli.console import plain_console
from elastream.errors import SettingError
from elastream.lanes import Store
from elastream.policies.autrascale import BenefitModel
from elastream.policies.model_library import ModelLibrary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "library", metavar="DIR", help="a base directory, or the one that runs were given with --models"
    )
    parser.add_argument("model", nargs="?", metavar="APP@RATE", help="one model: everything that was measured")
    parser.add_argument(
        "--remove", action="store_true", help="remove this model; it is learned again when it is needed"
    )


def main(args: argparse.Namespace) -> int:
    library, console = ModelLibrary(Store(args.library)), plain_console()
    if args.model is None:
        if args.remove:
            raise SettingError("models: remove which? write: elastream models DIR APP@RATE --remove")
        names = library.names()
        console.print(_overview({name: library.read(name) for name in names}) if names else f"no models in {library}")
    elif args.remove:
        library.remove(args.model)
        console.print(f"{args.model} is removed", markup=False)
    else:
        console.print(_samples(library.read(args.model)))
    return 0


def _overview(models: dict[str, BenefitModel]) -> Table:
    table = Table()
    table.add_column("model", no_wrap=True)
    for column in ("input per s", "operators", "base", "most", "samples", "lowest latency ms"):
        table.add_column(column)
    for name, model in models.items():
        lowest = min((sample.latency_s for sample in model.samples), default=float("nan"))
        table.add_row(
            name,
            f"{model.per_second:.4g}",
            ", ".join(model.operators),
            _sizes(model.base),
            _sizes(model.most),
            str(len(model.samples)),
            f"{lowest * 1e3:.0f}",
        )
    return table


def _samples(model: BenefitModel) -> Table:
    """In the order in which they were measured."""
    table = Table(*model.operators, "latency ms", "throughput per s")
    for sample in model.samples:
        table.add_row(*map(str, sample.sizes), f"{sample.latency_s * 1e3:.0f}", f"{sample.per_second:.4g}")
    return table


def _sizes(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))
