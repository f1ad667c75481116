"""Prints the public names of Python's `repops` and `verde`, from the text of their modules.

A module, class, function, method or attribute is a line, and so is a parameter of what is called,
with its position, or * where only the name counts. `NAME <= N`: a call needs N arguments. Constants
are named if `__all__` has them."""

import ast
import functools
from pathlib import Path

HERE = Path("python")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Classes that only functions make: nobody else calls them.
MADE = {"repops.jobs.CaptureError", "repops.jobs.Result", "repops.onnx.Model", "verde.State"}
# Attributes that a class has for other modules of the package.
OWN = {
    "repops.Context": {"device", "handle", "host", "inside", "job", "stream", "watcher"},
    "repops.onnx.Model": {"folded", "graph", "held", "moving", "steps", "trained", "whole"},
}


def is_public(name):
    return not name.startswith("_")


@functools.cache
def body_of(path):
    """The statements of a file by the names that they define, those under `if` or `try` too."""
    found, left = {}, list(ast.parse(path.read_text()).body)
    while left:
        it = left.pop(0)
        if isinstance(it, FUNCTIONS + (ast.ClassDef,)):
            found[it.name] = it
        elif isinstance(it, ast.ImportFrom):
            found.update({alias.asname or alias.name: (it, alias) for alias in it.names})
        elif isinstance(it, (ast.Assign, ast.AnnAssign)):
            targets = it.targets if isinstance(it, ast.Assign) else [it.target]
            found.update({t.id: it for t in targets if isinstance(t, ast.Name)})
        elif isinstance(it, (ast.If, ast.Try)):
            left = [*it.body, *it.orelse, *left]
    return found


def file_of(module):
    """The file of a module; of a package its stub, which has names that an import makes."""
    folder = HERE / module.replace(".", "/")
    files = [folder / "__init__.pyi", folder / "__init__.py", folder.with_suffix(".py")]
    return next((f for f in files if f.exists()), None)


def source_of(module, it):
    """The module that `from ... import` reads, as it stands in `module`."""
    if not it.level:
        return it.module
    is_package = file_of(module).stem == "__init__"
    parts = module.split(".")
    parts = parts[: len(parts) - it.level + is_package]
    return ".".join(parts + ([it.module] if it.module else []))


def definition(module, name):
    """Where a name is defined, and its statement; None: in no file here, or it is a module."""
    it = body_of(file_of(module)).get(name)
    if not isinstance(it, tuple):
        return (module, it)
    source = source_of(module, it[0])
    if file_of(f"{source}.{it[1].name}") or not source or not file_of(source):
        return (source, None)
    return definition(source, it[1].name)


def print_call(name, function, is_method):
    """The parameters of a function."""
    a = function.args
    places = (a.posonlyargs + a.args)[is_method:]
    optional = min(len(a.defaults), len(places))
    required = len(places) - optional + sum(d is None for d in a.kw_defaults)
    print(f"{name} <= {required}")
    for i, p in enumerate(places):
        print(f"{name}({p.arg} {i + 1})")
    for p in a.kwonlyargs:
        print(f"{name}({p.arg} *)")
    for p, stars in (a.vararg, "*"), (a.kwarg, "**"):
        if p:
            print(f"{name}({stars})")


def decorators(function):
    return {d.id for d in function.decorator_list if isinstance(d, ast.Name)}


def attributes(init):
    """What `__init__` sets of its object."""
    stores = [s for s in ast.walk(init) if isinstance(s, ast.Attribute)]
    stores = [s for s in stores if isinstance(s.ctx, ast.Store) and isinstance(s.value, ast.Name)]
    return {s.attr for s in stores if s.value.id == "self" and is_public(s.attr)}


def print_method(name, it):
    if it.name == "__init__":
        if name not in MADE:
            print_call(name, it, True)
        for attribute in attributes(it) - OWN.get(name, set()):
            print(f"{name}.{attribute}")
    elif it.name == "__call__":
        print_call(f"{name}()", it, True)
    elif is_public(it.name) and decorators(it) & {"property", "cached_property"}:
        print(f"{name}.{it.name}")
    elif is_public(it.name):
        print_call(f"{name}.{it.name}", it, "staticmethod" not in decorators(it))


def members(module, cls):
    """The methods and fields of a class, and of its bases in these files, by their names."""
    found = {}
    for base in cls.bases:
        where, it = definition(module, base.id) if isinstance(base, ast.Name) else (module, None)
        if isinstance(it, ast.ClassDef):
            found.update(members(where, it))
    for it in cls.body:
        if isinstance(it, FUNCTIONS):
            found[it.name] = it
        elif isinstance(it, ast.AnnAssign):
            found[it.target.id] = it
    return found


def print_class(name, module, cls):
    print(name)
    for member, it in members(module, cls).items():
        if isinstance(it, FUNCTIONS):
            print_method(name, it)
        elif is_public(member):
            print(f"{name}.{member}")


def print_name(module, name):
    where, it = definition(module, name)
    full = f"{module}.{name}"
    if isinstance(it, ast.ClassDef):
        print_class(full, where, it)
    elif isinstance(it, FUNCTIONS):
        print_call(full, it, False)
    else:
        print(full)


def names_of(module):
    """What a module exports: the names of `__all__` and functions, else what it defines."""
    file = file_of(module)
    body, own = body_of(file), body_of(file.with_suffix(".py"))
    defined = {n: it for n, it in body.items() if is_public(n) and not isinstance(it, tuple)}
    if "__all__" not in own:
        return [n for n in defined if not n.isupper()]
    listed = [e.value for e in own["__all__"].value.elts if isinstance(e, ast.Constant)]
    return listed + [n for n, it in defined.items() if isinstance(it, FUNCTIONS)]


def modules():
    for path in sorted(HERE.glob("repops/**/*.py")) + sorted(HERE.glob("verde/**/*.py")):
        parts = path.relative_to(HERE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if all(is_public(p) for p in parts):
            yield ".".join(parts)


for module in modules():
    print(module)
    for name in names_of(module):
        print_name(module, name)
