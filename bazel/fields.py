#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fields: writes the tables of the fields of a module's structs, from their declarations in its public headers.

usage: fields.py --types TYPES HEADER...
       fields.py OUTPUT TYPES HEADER...
The first form lists the types that all public headers declare, the second writes a table, prefix_fields, for each struct
of the headers that has a prefix_get_type () or a flag. base/fields_private.h says what it is for.
"""
import re
import sys

import declarations

NUMBERS = {
    "gboolean": "BOOLEAN", "int": "INT", "gint": "INT", "gint32": "INT", "guint": "UINT", "guint32": "UINT", "gint64": "INT64",
    "guint64": "UINT64", "double": "DOUBLE"
}
GLIB = {
    "GBytes": "g_bytes", "GHashTable": "g_hash_table", "GPtrArray": "g_ptr_array", "GArray": "g_array", "GCancellable": "g_cancellable",
    "GFile": "g_file"
}
ATTRIBUTES = {"min", "max", "flag", "of", "arg", "option"}
# What the help calls a flag's value, by the field's kind.
VALUES = {"BOOLEAN": None, "INT": "N", "UINT": "N", "INT64": "N", "UINT64": "N", "STRING": "TEXT"}


def prefix_of(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def listed(headers):
    """The types that headers declare: which can be copied, and which are numbers."""
    found = declarations.read_all(headers)
    boxed = sorted(function.name[:-len("_get_type")] for function in found.functions if function.name.endswith("_get_type"))
    return "".join("boxed %s\n" % name for name in boxed) + "".join("enum %s %d %d\n" % (name, *found.enums[name]) for name in sorted(found.enums)) + "".join(
        "struct %s\n" % struct.name for struct in found.structs)


class Types:
    def __init__(self, text, headers):
        words = [line.split() for line in text.splitlines()]
        self.boxed = {name for kind, name, *_ in words if kind == "boxed"}
        self.enums = {name: dict(zip(("min", "max"), values)) for kind, name, *values in words if kind == "enum"}
        self.structs_anywhere = {name for kind, name, *_ in words if kind == "struct"}
        self.own = declarations.read_all(headers)

    def get_type(self, name):
        prefix = GLIB.get(name, prefix_of(name))
        return prefix + "_get_type" if name in GLIB or prefix in self.boxed else None

    def structs(self):
        return [struct for struct in self.own.structs
                if prefix_of(struct.name) in self.boxed or any("flag" in field.attributes for field in struct.fields)]


def kind_of(types, struct, field):
    """A field's kind and function of its type; None for what a copy shares: functions and their data."""
    base, stars = re.fullmatch(r"(\w*) ?(\**)", field.type).groups()
    counted = any((other.type, other.name) == ("gsize", "n_" + field.name) for other in struct.fields)
    if field.array:
        return None
    if base == "char" and stars:
        return ("STRING" if stars == "*" else "COUNTED_STRINGS" if counted else "STRINGS"), "NULL"
    if not stars and (base in NUMBERS or base in types.enums):
        return NUMBERS.get(base, "INT"), "NULL"
    get_type = types.get_type(base)
    if get_type is None:
        if stars and base not in types.structs_anywhere and base not in ("gint64", "guint"):
            raise SystemExit("%s: %s.%s has a type that no public header declares: %s" % (struct.header, struct.name, field.name, base))
        return None
    kind = {"": "VALUE", "*": "VALUES" if counted else "POINTER", "**": "POINTERS"}[stars]
    return kind, get_type


def help_of(struct, field):
    """The first sentence of a field's line, as the help of its flag: "the number of X; 0: all" is "number of X (default: all)"."""
    flags = {other.name: "--" + (other.attributes.get("flag") or other.attributes["option"]) for other in struct.fields
             if {"flag", "option"} & set(other.attributes)}
    first = re.split(r"\.(?=\s|$)", re.sub(r" \(%\w+\)", "", field.sentence))[0]
    parts = re.sub(r"^the ", "", first).split("; ")
    values = [re.fullmatch(r"(0|`NULL`|-?\d+|below 0): (.*)", part) for part in parts]
    told = ["default: " + value[2] for value in values if value and value[1] in ("0", "`NULL`")]
    told += [value[0] for value in values if value and value[1] not in ("0", "`NULL`")]
    text = "; ".join(part for part, value in zip(parts, values) if not value) + (" (%s)" % "; ".join(told) if told else "")
    text = re.sub(r"@(\w+) of \[struct@\w+\]", lambda name: "--" + name[1].replace("_", "-"), text)
    text = re.sub(r"@(\w+)", lambda name: flags.get(name[1], name[0]), text)
    if not text or re.search(r"[@\\\"]|%\w", text):
        raise SystemExit("%s: the first sentence of %s.%s is no help for a flag: '%s'" % (struct.header, struct.name, field.name, text))
    return text


def flag_of(types, struct, field, kind):
    """What "(attributes flag=NAME of=COMMAND,… arg=VALUE)" in a field's line says."""
    given = field.attributes
    if kind not in VALUES and (kind, given.get("arg")) != ("DOUBLE", "PERCENT"):
        raise SystemExit("%s: %s.%s can't have a flag" % (struct.header, struct.name, field.name))
    if field.type in types.enums and given.get("arg", "").count("|") != int(types.enums[field.type]["max"]):
        raise SystemExit("%s: %s.%s needs arg=WORD|WORD…, a word for each value of %s" % (struct.header, struct.name, field.name, field.type))
    value = given.get("arg", "TIME" if field.name.endswith("_us") else VALUES.get(kind))
    if value == "TIME" and re.search(r"default: [\d.]+ ", help_of(struct, field)):
        raise SystemExit("%s: the default of %s.%s is no duration that its flag takes (write 30s)" % (struct.header, struct.name, field.name))
    texts = ['"%s"' % text if text else "NULL" for text in (given["flag"], given.get("of"), value, help_of(struct, field))]
    return ".flag = &(const MusterFieldFlag){%s}" % ", ".join(texts)


def row_of(types, struct, field):
    found = kind_of(types, struct, field)
    unknown = set(field.attributes) - ATTRIBUTES
    if unknown:
        raise SystemExit("%s: %s.%s has the unknown attributes %s" % (struct.header, struct.name, field.name, ", ".join(sorted(unknown))))
    if found is None:
        return None
    kind, get_type = found
    members = ['.name = "%s"' % field.name, ".kind = MUSTER_FIELD_" + kind, ".offset = G_STRUCT_OFFSET (%s, %s)" % (struct.name, field.name)]
    if get_type != "NULL":
        members.append(".type = " + get_type)
    if kind in ("COUNTED_STRINGS", "POINTERS", "VALUES"):
        members.append(".n_offset = G_STRUCT_OFFSET (%s, n_%s)" % (struct.name, field.name))
    if kind in ("VALUE", "VALUES"):
        members.append(".size = sizeof %s((%s *)0)->%s" % ("*" if kind == "VALUES" else "", struct.name, field.name))
    if field.private:
        members.append(".is_private = TRUE")
    limits = {**types.enums.get(field.type, {}), **{name: field.attributes[name] for name in ("min", "max") if name in field.attributes}}
    if limits:
        least, most = (re.sub(r"^-?\d+$", r"\g<0>.0L", str(limits.get(name, value))) for name, value in (("min", "-INFINITY"), ("max", "INFINITY")))
        members.append(".has_range = TRUE, .min = %s, .max = %s" % (least, most))  # a double would round 2^63 - 1
    if "flag" in field.attributes:
        members.append(flag_of(types, struct, field, kind))
    return "    {%s}," % ", ".join(members)


def table_of(types, struct):
    prefix = prefix_of(struct.name)
    rows = [row for row in (row_of(types, struct, field) for field in struct.fields) if row is not None]
    if not rows:
        return "const MusterFields %s_fields = {\"%s\", sizeof (%s), NULL, 0};\n" % (prefix, struct.name, struct.name)
    return ("static const MusterField %s_rows[] = {\n%s\n};\nconst MusterFields %s_fields = {\"%s\", sizeof (%s), %s_rows, G_N_ELEMENTS (%s_rows)};\n" %
            (prefix, "\n".join(rows), prefix, struct.name, struct.name, prefix, prefix))


def source_of(types, headers):
    text = "\n".join(table_of(types, struct) for struct in types.structs())
    if not text:
        return "/* No structs. */\ntypedef int nothing;\n"
    used = sorted(set(re.findall(r"\.type = (\w+)", text)))
    return ("/* Written by bazel/fields.py. */\n#include \"base/fields_private.h\"\n" + "".join("#include \"%s\"\n" % header for header in headers) + "\n#include <math.h>\n\n" +
            "".join("GType %s (void);\n" % get_type for get_type in used) + "\n" + text)


def main(output, source, *headers):
    if output == "--types":
        output, text = source, listed(headers)
    else:
        with open(source, encoding="utf-8") as file:
            text = source_of(Types(file.read(), headers), headers)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
