#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_stubs.py FILE.gir [ADDITIONS.pyi]: the types of a namespace for mypy, from its GIR and what the overrides add, on the standard output.

Additions are merged into the classes of their names; what they define replaces what the GIR says.
"""
import ast
import keyword
import os
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "muster"))
import _blocking

CORE = "{http://www.gtk.org/introspection/core/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"
GLIB = "{http://www.gtk.org/introspection/glib/1.0}"
OPTIONS = ("Options", "Training", "RpcSecurity", "SaverBuild")  # what the names of such structs end with
SCALARS = {"none": "None", "utf8": "str", "filename": "str", "gboolean": "bool", "gpointer": "Any", "gconstpointer": "Any", "gfloat": "float",
           "gdouble": "float", "GType": "Any"}
SCALARS.update({name: "int" for name in "gint guint gint8 guint8 gint16 guint16 gint32 guint32 gint64 guint64 gsize gssize glong gulong "
                                         "guintptr gintptr gchar guchar gunichar gshort gushort".split()})


def name_of(element):
    name = element.get("name").replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


class Types:
    def __init__(self, namespace):
        self.callbacks = {element.get("name") for element in namespace.findall(CORE + "callback")}
        self.records = {element.get("name"): element for element in namespace.findall(CORE + "record")}

    def of(self, element, taken=False):
        """The type of a parameter, a result or a field. taken: Python gives it, so that any sequence is welcome."""
        array = element.find(CORE + "array")
        if array is not None:
            inner = array.find(CORE + "type")
            inner = self.named(inner) if inner is not None else "Any"
            if array.find(CORE + "type") is not None and array.find(CORE + "type").get("name") == "guint8":
                return "bytes"
            return "%s[%s]" % ("Sequence" if taken else "list", inner)
        of_type = element.find(CORE + "type")
        if element.find(CORE + "callback") is not None or of_type is None:
            return "Callable[..., Any]"
        return self.named(of_type)

    def options_in(self, field):
        """The struct of options that a field holds; None for another field."""
        held = field.find(CORE + "type")
        name = held.get("name", "") if held is not None and "*" not in held.get(C + "type", "") else ""
        return self.records.get(name) if name.endswith(OPTIONS) else None

    def struct(self, element):
        """The struct of options of such a parameter, of this namespace; one without fields if it is another's."""
        return self.records.get(self.of(element), ElementTree.Element("record", name=""))

    def named(self, element):
        name = element.get("name", "gpointer")
        if name in ("GLib.PtrArray", "GLib.List", "GLib.SList", "GLib.Array"):
            inner = element.find(CORE + "type")
            return "list[%s]" % (self.named(inner) if inner is not None else "Any")
        if name == "GLib.HashTable":
            return "dict[Any, Any]"
        if name in self.callbacks or name.split(".")[-1] in ("DestroyNotify", "AsyncReadyCallback"):
            return "Callable[..., Any]"
        return SCALARS.get(name, name)


def may_be_none(element):
    return element.get("nullable") == "1" or element.get("allow-none") == "1"


def given(kind, name):
    """The type of what Python may give for a text or another value of that name."""
    if kind in ("str", "list[str]", "Sequence[str]") and _blocking.is_path(name):
        return kind.replace("str", "Path")
    return {"GLib.Bytes": "Bytes"}.get(kind, kind)


class Function:
    def __init__(self, element, types, kind):
        self.element, self.types, self.kind = element, types, kind
        self.name = name_of(element)
        self.parameters = element.findall("%sparameters/%sparameter" % (CORE, CORE))
        self.passed = [each for each in self._visible() if each.get("direction", "in") != "out"]

    def _visible(self):
        hidden = set()
        for holder in self.parameters + [self.element.find(CORE + "return-value")]:
            array = holder.find(CORE + "array") if holder is not None else None
            if array is not None and array.get("length"):
                hidden.add(int(array.get("length")))
            if holder is not None and holder.get("destroy"):
                hidden.add(int(holder.get("destroy")))
        return [each for i, each in enumerate(self.parameters) if i not in hidden]

    def result(self):
        value = self.element.find(CORE + "return-value")
        filled = [each for each in self.passed if each.get("name") in _blocking.FILLED]
        if filled:
            return self.types.of(filled[0])
        parts = []
        if self.types.of(value) != "None":
            parts.append(self._maybe(value))
        parts += [self._maybe(each) for each in self._visible() if each.get("direction", "in") != "in"]
        return "None" if not parts else parts[0] if len(parts) == 1 else "tuple[%s]" % ", ".join(parts)

    def _maybe(self, element, taken=False):
        kind = given(self.types.of(element, taken), element.get("name") or "") if taken else self.types.of(element)
        return "Optional[%s]" % kind if may_be_none(element) and kind not in ("Any", "None") else kind

    def text(self, indent, class_name=None, in_c=None, in_init=False):
        """Its line, and that of its awaitable form if it waits; in_c: C's asynchronous form of it, which takes a callback. in_init: the line
        of an __init__ () that takes the same."""
        names = [name_of(each) for each in self.passed]
        blocks = _blocking.blocks(self.name, names, self.element.get("throws") == "1", class_name)
        options = next((each for each in self.passed if self.types.of(each).endswith(OPTIONS)), None)
        has_time = bool(set(names) & set(_blocking.TIMES)) and not self.name.startswith("deadline_")
        adapted = blocks or has_time or options is not None or "report" in names
        parts, may_miss = [], [self._may_be_missed(each, adapted, options) for each in self.passed]
        for i, each in enumerate(self.passed):
            default = " = ..." if all(may_miss[i:]) else ""
            kind = "Optional[int]" if adapted and names[i] in _blocking.TIMES else self._maybe(each, taken=True)
            parts.append("%s: %s%s" % (names[i], kind, default))
        named = {"timeout": "Timeout"} if adapted and any(name in _blocking.TIMES for name in names) else {}
        if options is not None:
            named.update((name, kind) for name, kind in keywords_of(self.types.struct(options), self.types).items() if name not in names)
        if named:
            parts += ["*"] + ["%s: %s = ..." % each for each in named.items()]
        if in_init:
            return indent + "def __init__(%s) -> None: ...\n" % ", ".join(["self"] + parts)
        first = {"method": ["self"], "constructor": ["cls"], "function": []}[self.kind]
        above = {"constructor": indent + "@classmethod\n", "method": "", "function": indent + "@staticmethod\n" if indent else ""}[self.kind]
        line = above + indent + "def %s(" + ", ".join(first + parts) + ") -> %s: ...\n"
        text = line % (self.name, self.result())
        awaitable = line % (self.element.get("name") + "_async", "Awaitable[%s]" % self.result())
        if not blocks:
            return text
        if in_c is not None:
            given, callback, rest = in_c.text(indent).partition("callback: ")
            given = given.replace(" = ...", "") + callback + rest.replace("Optional[Callable[..., Any]] = ...", "Callable[..., Any]", 1)
            awaitable = indent + "@overload\n" + given.replace("-> None", "-> Any") + indent + "@overload\n" + awaitable
        return awaitable + text  # before it, where `list` isn't a method yet

    def _may_be_missed(self, element, adapted, options):
        return may_be_none(element) or name_of(element) == "user_data" or (adapted and (name_of(element) in _blocking.TIMES or element is options))


def typed(functions):
    """(function, C's asynchronous form of it or None)"""
    functions = {function.name: function for function in functions
                 if function.element.get("moved-to") is None and function.element.get("shadowed-by") is None}
    return [(function, functions.get(name + "_async")) for name, function in functions.items()
            if not (name.endswith("_async") and name[:-len("_async")] in functions)]


def is_removed(field, element, types):
    """Whether the overrides remove it from a struct of options: a function that can't be set, or what one is called with."""
    is_of_function = types.of(field) in ("Any", "Callable[..., Any]") or field.get("name").endswith("owner")
    setters = {method.get("name") for method in element.findall(CORE + "method")}
    return element.get("name").endswith(OPTIONS) and is_of_function and "set_" + field.get("name") not in setters


def fields_of(element, types):
    """The lines of its fields, and of those that it has of the structs of options within it: what can be set, if only one has the name."""
    found, within = {}, {}
    for field in element.findall(CORE + "field"):
        if field.get("private") != "1" and field.get("readable", "1") == "1" and not field.get("name").startswith("_") and element.tag == CORE + "record":
            kind = types.of(field)
            if not is_removed(field, element, types):
                found[name_of(field)] = "    %s: %s\n" % (name_of(field), "Optional[%s]" % kind if kind in ("str", "Any") or may_be_none(field) else kind)
            inner = types.options_in(field)
            for name, line in (fields_of(inner, types) if inner is not None else {}).items():
                within.setdefault(name, []).append(line)
    return {**found, **{name: lines[0] for name, lines in within.items()
                        if name not in found and len(lines) == 1 and not (name.startswith("n_") and name[len("n_"):] in within)}}


def is_of_structs(field, types):
    """Whether it is an array of structs that no value can hold."""
    array = field.find(CORE + "array")
    inner = array.find(CORE + "type") if array is not None else None
    record = types.records.get(inner.get("name")) if inner is not None else None
    return record is not None and record.get(GLIB + "get-type") is None


def own_keywords(element, types):
    methods = {method.get("name") for method in element.findall(CORE + "method")}
    found = {}
    for field in element.findall(CORE + "field"):
        name, kind = field.get("name"), types.of(field, taken=True)
        if _blocking.ADDERS.get(name) in methods:
            found[name] = "Optional[Mapping[str, Any]]"
        elif "set_" + name in methods or not (is_removed(field, element, types) or field.get("private") == "1" or is_of_structs(field, types)):
            kind = "Timeout" if name.endswith("_us") else given(kind, name)
            found[name] = kind if kind in ("int", "float", "bool", "Timeout") else "Optional[%s]" % kind
    lengths = {"n_" + field.get("name") for field in element.findall(CORE + "field")
               if field.find(CORE + "array") is not None or field.get("name") in _blocking.ADDERS}
    return {name[:-len("_us")] if name.endswith("_us") else name: kind for name, kind in found.items() if name not in lengths}


def keywords_of(element, types):
    """The keywords of a struct of options and their types, as _options.keywords () has them when it runs."""
    within = {}
    for inner in filter(None, map(types.options_in, element.findall(CORE + "field"))):
        for name, kind in keywords_of(inner, types).items():
            within.setdefault(name, []).append(kind)
    return {**own_keywords(element, types), **{name: kinds[0] for name, kinds in within.items()
                                               if len(kinds) == 1 and name not in own_keywords(element, types)}}


def initialiser(element, types):
    """The line of its __init__ (), which takes what new () does, or options' fields."""
    new = next((Function(each, types, "constructor") for kind in ("constructor", "function") for each in element.findall(CORE + kind)
                if each.get("name") == "new" and each.get("introspectable") != "0"), None)
    if not element.get("name").endswith(OPTIONS):
        return new.text("    ", element.get("name"), in_init=True) if new is not None else ""
    first = {name_of(each): new._maybe(each, True) + (" = ..." if may_be_none(each) else "") for each in new.passed} if new is not None else {}
    fields = {name: kind + " = ..." for name, kind in keywords_of(element, types).items() if name not in first}
    parts = ["self"] + ["%s: %s" % each for each in first.items()] + ["*"] * bool(fields) + ["%s: %s" % each for each in fields.items()]
    return "    def __init__(%s) -> None: ...\n" % ", ".join(parts)


def members(element, types, replaced):
    """The lines of a class, but for those of replaced names."""
    found = fields_of(element, types)
    functions = [Function(each, types, kind) for kind in ("constructor", "method", "function") for each in element.findall(CORE + kind)
                 if each.get("introspectable") != "0"]
    for function, in_c in typed(functions):
        found[function.name] = function.text("    ", element.get("name"), in_c)
    for method in element.findall(CORE + "virtual-method"):
        if method.get("introspectable") != "0":
            found["do_" + name_of(method)] = "    def do_%s(self, *args: Any, **kwargs: Any) -> Any: ...\n" % name_of(method)
    return "".join(text for name, text in found.items() if name not in replaced)


def bases_of(element):
    bases = [element.get("parent")] + [each.get("name") for each in element.findall(CORE + "implements")]
    is_boxed = element.tag == CORE + "record" and element.get(GLIB + "get-type") and element.find(CORE + "method[@name='copy']") is None
    return [base for base in bases if base] or ["GObject.GInterface"] * (element.tag == CORE + "interface") + ["GObject.GBoxed"] * bool(is_boxed)


def read_additions(path):
    """({class: (its names, its lines)}, names at the top, lines at the top)"""
    if path is None:
        return {}, set(), ""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    classes, names, top = {}, set(), []
    for node in ast.parse(source).body:
        text = "\n".join(source.split("\n")[min([node.lineno] + [each.lineno for each in getattr(node, "decorator_list", [])]) - 1:node.end_lineno]) + "\n"
        if isinstance(node, ast.ClassDef) and not node.bases:
            classes[node.name] = ({each.name for each in node.body if isinstance(each, ast.FunctionDef)}, text.split("\n", 1)[1])
        else:
            names.add(getattr(node, "name", None))
            top.append(text)
    return classes, names, "".join(top)


def stubs(gir, additions=None):
    namespace = ElementTree.parse(gir).getroot().find(CORE + "namespace")
    types = Types(namespace)
    classes, replaced, top = read_additions(additions)
    out = ["# Made from %s.\n" % gir.rsplit("/", 1)[-1],
           "import datetime\nimport os\nfrom collections.abc import Iterator, Mapping\nfrom typing import Any, Awaitable, Callable, NamedTuple, Optional, Sequence, TypeVar, Union, overload\n\n",
           "from gi.repository import Gio, GLib, GObject\n" + ("from gi.repository import Muster\n" if namespace.get("name") != "Muster" else ""),
           "\nTimeout = Union[float, datetime.timedelta, None]\nPath = Union[str, os.PathLike[str]]\nBytes = Union[bytes, GLib.Bytes]\n"]
    for constant in namespace.findall(CORE + "constant"):
        out.append("%s: %s\n" % (name_of(constant), types.of(constant)))
    for alias in namespace.findall(CORE + "alias"):
        out.append("%s = %s\n" % (alias.get("name"), "Any" if types.of(alias) == "None" else types.of(alias)))
    for kind in ("enumeration", "bitfield"):
        for element in namespace.findall(CORE + kind):
            out.append("\nclass %s(int):\n    name: str\n    value: int\n" % element.get("name"))
            out += ["    %s: %s\n" % (each.get("name").upper(), element.get("name")) for each in element.findall(CORE + "member")]
            out += [Function(each, types, "function").text("    ") for each in element.findall(CORE + "function") if each.get("introspectable") != "0"]
    for kind in ("interface", "class", "record"):
        for element in namespace.findall(CORE + kind):
            if element.get("introspectable") == "0" or element.get(GLIB + "is-gtype-struct-for"):
                continue
            names, lines = classes.get(element.get("name"), (set(), ""))
            bases = bases_of(element)
            if "__init__" not in names:
                lines += initialiser(element, types)
            out.append("\nclass %s%s:\n%s" % (element.get("name"), "(%s)" % ", ".join(bases) if bases else "",
                                            members(element, types, names) + lines or "    ...\n"))
    out.append("\n")
    functions = [Function(each, types, "function") for each in namespace.findall(CORE + "function") if each.get("introspectable") != "0"]
    out += [function.text("", None, in_c) for function, in_c in typed(functions) if function.name not in replaced]
    return "".join(out) + "\n" + top


if __name__ == "__main__":
    sys.stdout.write(stubs(*sys.argv[1:]))
