# SPDX-License-Identifier: Apache-2.0
"""What introspection data says: every public symbol with its description, its header and its page in the reference."""
import dataclasses
import re
import xml.etree.ElementTree as ElementTree

CORE = "{http://www.gtk.org/introspection/core/1.0}"
C = "{http://www.gtk.org/introspection/c/1.0}"
GLIB = "{http://www.gtk.org/introspection/glib/1.0}"

TYPES = {"class": "class", "interface": "iface", "record": "struct", "union": "union", "enumeration": "enum",
         "bitfield": "flags", "callback": "callback", "constant": "const", "alias": "alias", "function": "func",
         "function-macro": "func"}
MEMBERS = {"method": "method", "constructor": "ctor", "function": "type_func", "virtual-method": "vfunc",
           "property": "property", "{%s}signal" % GLIB[1:-1]: "signal"}
# What a type is made of and has no page of its own.
PARTS = ("field", "member")
OF_EVERY_OBJECT = ("parent_instance", "parent_class", "parent_iface", "g_iface", "parent")


@dataclasses.dataclass
class Symbol:
    namespace: str
    kind: str  # the element's name
    name: str  # in C: MusterSaver, muster_saver_save, MUSTER_ERROR_UNKNOWN, MusterSaverOptions.clock
    page: str  # where the reference describes it
    doc: str  # "" without a description
    header: str
    line: int
    of: str = ""  # the type that it belongs to, in C
    bound: bool = True
    undocumented: tuple = ()  # parts of a function: @parameters, returns


def doc_of(element):
    doc = element.find(CORE + "doc")
    return (doc.text or "").strip() if doc is not None else ""


def place_of(element):
    place = element.find(CORE + "source-position")
    return (place.get("filename"), int(place.get("line"))) if place is not None else ("", 0)


def undocumented_parts(element):
    """Parameters and a result that have no description. A GError **, which every function that fails has, has none."""
    missing = []
    parameters = element.find(CORE + "parameters")
    for parameter in parameters if parameters is not None else ():
        if parameter.tag == CORE + "parameter" and not doc_of(parameter) and parameter.get("name") not in ("...", "error"):
            missing.append("@" + parameter.get("name"))
    result = element.find(CORE + "return-value")
    if result is not None and not doc_of(result):
        kind = result.find(CORE + "type")
        if kind is None or kind.get("name") != "none":
            missing.append("Returns")
    return tuple(missing)


def children_of(element):
    for child in element:
        kind = child.tag.replace(CORE, "")
        if kind in MEMBERS or kind in PARTS:
            yield kind, child


def is_private(kind, child):
    name = child.get("name")
    return kind == "field" and (child.get("private") == "1" or name in OF_EVERY_OBJECT or name.startswith("_"))


def read_type(namespace, kind, element):
    name, c_name = element.get("name"), element.get(C + "type") or element.get("name")
    page = "%s.%s.html" % ("error" if element.get(GLIB + "error-domain") else TYPES[kind], name)
    header, line = place_of(element)
    bound = element.get("introspectable") != "0"
    yield Symbol(namespace, kind, c_name, page, doc_of(element), header, line, bound=bound,
                 undocumented=undocumented_parts(element) if kind == "callback" else ())
    for part, child in children_of(element):
        if is_private(part, child):
            continue
        own = place_of(child)
        own = own if own[0] else (header, line)
        if part in PARTS:
            full = child.get(C + "identifier") or "%s.%s" % (c_name, child.get("name"))
            inner = child.find(CORE + "callback")
            doc = doc_of(child) or (doc_of(inner) if inner is not None else "")
            yield Symbol(namespace, part, full, page, doc, own[0], own[1], of=c_name)
            continue
        full = child.get(C + "identifier") or "%s.%s" % (c_name, child.get("name"))
        if part == "virtual-method" and child.get("invoker"):
            continue  # the method of that name describes it
        where = "%s.%s.%s.html" % (MEMBERS[part], name, child.get("name"))
        yield Symbol(namespace, part.split("}")[-1], full, where, doc_of(child), own[0], own[1], of=c_name,
                     bound=child.get("introspectable") != "0" and not child.get("moved-to"),
                     undocumented=undocumented_parts(child))


def read(path):
    """The symbols of a .gir file, in its order, and its namespace's name."""
    namespace = ElementTree.parse(path).getroot().find(CORE + "namespace")
    symbols = []
    for element in namespace:
        kind = element.tag.replace(CORE, "")
        if kind not in TYPES or element.get(GLIB + "is-gtype-struct-for"):
            continue
        if kind in ("function", "function-macro", "constant"):
            if element.get("moved-to"):
                continue
            header, line = place_of(element)
            symbols.append(Symbol(namespace.get("name"), kind, element.get(C + "identifier") or element.get(C + "type"),
                                  "%s.%s.html" % (TYPES[kind], element.get("name")), doc_of(element), header, line,
                                  bound=element.get("introspectable") != "0",
                                  undocumented=undocumented_parts(element) if kind == "function" else ()))
        else:
            symbols += read_type(namespace.get("name"), kind, element)
    return namespace.get("name"), symbols


def resolve(symbols, headers):
    """Gives each symbol its header's whole path: g-ir-scanner leaves out the folders that all of its sources share."""
    for symbol in symbols:
        if symbol.header and symbol.header not in headers:
            found = [header for header in headers if header.endswith("/" + symbol.header)]
            symbol.header = found[0] if len(found) == 1 else symbol.header


def summary(doc):
    """The first sentence of a description, without its paragraphs' line breaks."""
    paragraph = " ".join(doc.split("\n\n")[0].split())
    found = re.match(r"(.*?[.!?])(?= [A-Z`@\[(]|$)(?<!e\.g\.)(?<!i\.e\.)", paragraph)
    return found.group(1) if found else paragraph
