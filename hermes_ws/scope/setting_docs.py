"""What stands below each setting in the source: its documentation.

It is read when somebody asks for it. To read it means to parse the source, which would take a tenth of every start.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel


def setting_docs(section: type[BaseModel]) -> dict[str, str]:
    """The text below each field of this class and of those that it is made from, by the name of the field."""
    found: dict[str, str] = {}
    for each in reversed(section.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            found.update(_below_fields(each))
    return {name: text for name, text in found.items() if name in section.model_fields}


def _below_fields(section: type[BaseModel]) -> dict[str, str]:
    (written,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    assert isinstance(written, ast.ClassDef), "it is the source of a class"
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(written.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
