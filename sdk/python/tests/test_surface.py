"""What a program can use of this package is written down in surface.txt, so that every removal is seen in review: within a
major version there are only additions. TILL_UPDATE=1 python3 -m unittest tests.test_surface writes it anew."""

import ast
import collections
import os
import re
import unittest

import till
from till import types_gen

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "till")


def imported(path):
    """The modules of this package that a file imports, anywhere in it."""
    package = os.path.relpath(path, PACKAGE).split(os.sep)[:-1]
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = package[: len(package) - node.level + 1]
            for name in [node.module] if node.module else [a.name for a in node.names]:
                yield ".".join(above + [name])


def public(name):
    return not name.startswith("_") or name == "__init__"


def of_function(node):
    args = node.args
    out = [a.arg for a in args.posonlyargs + args.args]
    if args.vararg:
        out.append("*" + args.vararg.arg)
    elif args.kwonlyargs:
        out.append("*")
    out += [a.arg + ("" if d is None else "=") for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    return "%s(%s)" % (node.name, ", ".join(out))


def of_class(node):
    yield "class " + node.name
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and public(part.name):
            kind = "" if not part.decorator_list else "@" + ast.unparse(part.decorator_list[0]) + " "
            yield "%s.%s%s" % (node.name, kind, of_function(part))
        elif isinstance(part, ast.AnnAssign) and public(part.target.id):
            yield "%s.%s: %s" % (node.name, part.target.id, ast.unparse(part.annotation))
        elif isinstance(part, ast.Assign) and public(part.targets[0].id):
            yield "%s.%s" % (node.name, part.targets[0].id)


def surface():
    out, passed_on = [], collections.defaultdict(list)  # what a module offers by "import A as A" is defined in another one
    for folder, _, files in os.walk(PACKAGE):
        for file in files:
            path = os.path.join(folder, file)
            name = os.path.relpath(path, PACKAGE)[:-3].replace(os.sep, ".")
            # What is generated is reviewed where it is generated.
            if not file.endswith(".py") or "migrations" in name or "management" in name or name.endswith("_gen"):
                continue
            with open(path, encoding="utf-8") as f:
                tree = ast.parse(f.read(), feature_version=(3, 9))
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and public(node.name):
                    out += ["%s: %s" % (name, line) for line in of_class(node)]
                elif isinstance(node, ast.FunctionDef) and public(node.name):
                    out.append("%s: %s" % (name, of_function(node)))
                elif isinstance(node, ast.ImportFrom) and node.level:
                    passed_on[name] += [(node.module, a.name) for a in node.names if a.name == a.asname]
    for name, names in passed_on.items():
        for where, what in names:
            out += [name + line[len(where) :] for line in out if re.match(r"%s: (class )?%s\b" % (where, what), line)]
    out += ["till: " + name for name in till.__all__ if name not in types_gen.__all__]
    return sorted(out)


class TestSurface(unittest.TestCase):
    maxDiff = None

    def test_surface(self):
        path, got = os.path.join(HERE, "..", "surface.txt"), surface()
        if os.environ.get("TILL_UPDATE"):
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(got) + "\n")
        with open(path, encoding="utf-8") as f:
            self.assertEqual(f.read().splitlines(), got, "surface.txt is not what this package offers: TILL_UPDATE=1 python3 -m unittest tests.test_surface")

    def test_every_name_is_there(self):
        for name in till.__all__:
            self.assertTrue(hasattr(till, name), name)
        self.assertEqual(len(till.__all__), len(set(till.__all__)))

    def test_version(self):
        with open(os.path.join(HERE, "..", "..", "VERSION")) as f:
            version = f.read().strip()
        with open(os.path.join(HERE, "..", "pyproject.toml")) as f:
            self.assertIn('\nversion = "%s"\n' % version, f.read())
        self.assertEqual(till.VERSION, version)

    def test_no_module_imports_itself_by_way_of_others(self):
        """Not for its types alone, and not inside of a function either."""
        imports = {}
        for folder, _, files in os.walk(PACKAGE):
            for file in files:
                path = os.path.join(folder, file)
                if file.endswith(".py"):
                    imports[os.path.relpath(path, PACKAGE)[:-3].replace(os.sep, ".")] = set(imported(path))

        def walk(module, way):
            self.assertNotIn(module, way, "a circle of imports: " + " -> ".join(way + [module]))
            for other in sorted(imports[module] & set(imports)):
                walk(other, way + [module])
            imports[module] = set()  # no circle begins here

        for module in sorted(imports):
            walk(module, [])

    def test_nothing_is_imported_but_the_standard_library(self):
        """Frameworks are imported by their own part, databases not at all."""
        allowed = {"django": {"django"}, "flask": {"flask"}}
        for folder, _, files in os.walk(PACKAGE):
            for file in files:
                path = os.path.join(folder, file)
                if not file.endswith(".py"):
                    continue
                part = os.path.relpath(path, PACKAGE).split(os.sep)[0].replace(".py", "")
                with open(path, encoding="utf-8") as f:
                    tree = ast.parse(f.read())
                for node in ast.walk(tree):
                    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
                    for name in names:
                        top = name.partition(".")[0]
                        self.assertTrue(top in STANDARD or top == "till" or top in allowed.get(part, ()), "%s imports %s" % (path, name))


STANDARD = {
    "__future__", "ast", "base64", "binascii", "concurrent", "contextlib", "dataclasses", "datetime", "decimal", "email", "fcntl", "fractions", "hashlib",
    "hmac", "http", "io", "ipaddress", "json", "logging", "math", "msvcrt", "os", "random", "re", "selectors", "socket", "ssl", "sys", "threading", "time",
    "typing", "urllib", "uuid",
}  # fmt: skip

if __name__ == "__main__":
    unittest.main()
