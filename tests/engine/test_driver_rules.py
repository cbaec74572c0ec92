"""Rules that keep the driver readable: small modules and few collaborators."""

import ast
from pathlib import Path

import elastream.engine.driver

FOLDER = Path(elastream.engine.driver.__file__).parent
MODULES = {str(path.relative_to(FOLDER)): path.read_text() for path in FOLDER.rglob("*.py")}
VALUES = {"Graph", "Settings", "Entry", "str", "int", "float", "bool", "None", "Callable", "tuple", "dict", "Mapping"}
"""Types of parameters that are no collaborators."""


def classes() -> list[tuple[str, ast.ClassDef]]:
    found = []
    for name, text in MODULES.items():
        found += [(name, node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return found


def collaborators(init: ast.FunctionDef) -> list[str]:
    parameters = [*init.args.args, *init.args.kwonlyargs]
    kinds = [ast.unparse(one.annotation).split(" |")[0].split("[")[0] for one in parameters if one.annotation]
    return [kind for kind in kinds if kind not in VALUES]


def test_no_module_is_longer_than_300_lines() -> None:
    assert {name: lines for name, text in MODULES.items() if (lines := text.count("\n")) > 300} == {}


def test_no_constructor_has_more_than_six_collaborators() -> None:
    crowded = {}
    for name, made in classes():
        for node in made.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__" and len(collaborators(node)) > 6:
                crowded[f"{name}:{made.name}"] = collaborators(node)
    assert crowded == {}
