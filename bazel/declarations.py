# SPDX-License-Identifier: Apache-2.0
"""What headers declare, read from their text: functions, and which of their pointers may be NULL by their comments; structs and
their fields, with the annotations of a field's line in the comment; enumerations and types of functions.

A comment counts for the declarations behind it up to an empty line. It allows NULL for what it calls "NAME (nullable …)",
"@NAME: (nullable)" or "NAME may be NULL"; so do `_free`, `_unref`, and the pointers that docs/api-conventions.md names.
"""

import functools
import operator
import re
from dataclasses import dataclass, field

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\n|[A-Za-z_]\w*|\.\.\.|\"(?:[^\"\\]|\\.)*\"|\S", re.S)
MACRO_TYPES = re.compile(
    r"^G_DECLARE_(?:FINAL|DERIVABLE)_TYPE|^G_DECLARE_INTERFACE")
IGNORED_MACROS = {"G_DEFINE_AUTOPTR_CLEANUP_FUNC", "G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC"}
ATTRIBUTES = {"G_GNUC_PRINTF", "G_GNUC_NULL_TERMINATED", "G_GNUC_WARN_UNUSED_RESULT", "G_GNUC_PURE", "G_GNUC_CONST", "G_GNUC_MALLOC"}
# docs/api-conventions.md, "Pointers"
ALWAYS_NULLABLE = {"GCancellable *", "GError **", "gpointer", "GDestroyNotify", "GAsyncReadyCallback"}
DEFAULTS = {"storage": "MusterStorage *", "clock": "MusterClock *"}
PRIVATE = "/*< private >*/"
COUNTS = {"gsize", "guint", "int", "gint64"}


class Unreadable(Exception):
    """A declaration that this reader doesn't understand."""


@dataclass
class Parameter:
    type: str
    name: str
    array: bool = False  # written as NAME[]
    nullable: bool = False
    is_callback: bool = False
    count: str = ""  # the parameter that says how many elements it has

    @property
    def is_pointer(self):
        return self.is_callback or self.array or self.type.endswith("*") or self.type in ("gpointer", "gconstpointer")


@dataclass
class Function:
    name: str
    returns: str
    parameters: list
    comment: str
    header: str
    variadic: bool = False

    @property
    def has_error(self):
        return bool(self.parameters) and self.parameters[-1].type == "GError **"


@dataclass
class Field:
    """A member of a struct. What its line of the comment says: "@name: (attributes min=0 max=1): the sentence"."""
    type: str  # without const
    name: str
    array: bool = False
    private: bool = False  # behind /*< private >*/
    attributes: dict = field(default_factory=dict)
    sentence: str = ""


@dataclass
class Struct:
    name: str
    fields: list
    header: str


@dataclass
class Declarations:
    functions: list = field(default_factory=list)
    structs: list = field(default_factory=list)
    enums: dict = field(default_factory=dict)  # the least and the greatest value of each
    callbacks: set = field(default_factory=set)


def _without_preprocessor(text):
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", "", text, flags=re.M | re.S)


def _statements(text):
    """Yields (comment, tokens) for each statement at the top level; None where an empty line ends a comment's reach."""
    comment, tokens, depth, newlines = "", [], 0, 0
    for token in TOKEN.findall(text):
        if token == "\n":
            newlines += 1
            if newlines == 2 and not tokens:
                comment = ""
            continue
        newlines = 0
        if token.startswith(("/*", "//")):
            if token == PRIVATE:
                tokens.append(token)
            elif not tokens and depth == 0:
                comment = comment + "\n" + token if comment and token.startswith("//") else token
            continue
        if token in ("G_BEGIN_DECLS", "G_END_DECLS"):
            continue
        tokens.append(token)
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(token, 0)
        if depth < 0:
            raise Unreadable("unbalanced brackets near " + " ".join(tokens[-20:]))
        closes_macro = token == ")" and depth == 0 and tokens[0].startswith("G_DE")
        if depth == 0 and (token == ";" or closes_macro):
            yield comment, tokens
            tokens = []
    if tokens:
        raise Unreadable("no end of " + " ".join(tokens[:20]))


def _type(tokens):
    """A type as clang-format writes it."""
    text = " ".join(tokens)
    return re.sub(r"\* (?=\*)", "*", text)


def _split(tokens):
    parts, depth = [[]], 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _parameter(tokens):
    array = tokens[-1] == "]"
    if array:
        tokens = tokens[: tokens.index("[")]
    if len(tokens) < 2 or "(" in tokens or not re.match(r"[A-Za-z_]\w*$", tokens[-1]):
        raise Unreadable("parameter '%s'" % " ".join(tokens))
    return Parameter(_type(tokens[:-1]), tokens[-1], array)


def _function(comment, tokens, header):
    tokens = [token for token in tokens if token != "extern"]
    start = tokens.index("(")
    name, end, depth = tokens[start - 1], start, 0
    for end in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[end], 0)
        if depth == 0:
            break
    rest = tokens[end + 1 : -1]
    if rest and rest[0] not in ATTRIBUTES:
        raise Unreadable("'%s' behind %s ()" % (" ".join(rest), name))
    if start < 2 or not re.match(r"muster_\w+$", name):
        raise Unreadable("'%s'" % " ".join(tokens))
    inside = tokens[start + 1 : end]
    parts = [] if inside == ["void"] else _split(inside)
    variadic = bool(parts) and parts[-1] == ["..."]
    parameters = [_parameter(part) for part in (parts[:-1] if variadic else parts)]
    return Function(name, _type(tokens[: start - 1]), parameters, comment, header, variadic)


def _is_nullable(function, parameter):
    if parameter.type in ALWAYS_NULLABLE or DEFAULTS.get(parameter.name) == parameter.type:
        return True
    if parameter.type.startswith("const Muster") and parameter.name in ("options", "how"):
        return True
    if function.name.endswith(("_free", "_unref")):
        return True
    text = re.sub(r"\s*\n\s*\* ?", " ", function.comment)
    name = re.escape(parameter.name)
    annotation = re.search(r"@%s: ((?:\([^)]*\) ?)*)" % name, text)
    if annotation and ("(optional)" in annotation[1] or "(nullable)" in annotation[1] and "(out" not in annotation[1]):
        return True
    return bool(re.search(r"(?<!@)\b%s \(nullable|\b%s may be NULL" % (name, name), text))


def _count_of(parameter, parameters):
    """dims, n_dims; names, slices, n; data, size: whose NULL is fine while that is 0."""
    many = parameter.type.startswith("const ") or parameter.type.count("*") > 1 or parameter.type == "MusterExtent *"
    text = parameter.type == "const char *"
    if not many or parameter.name == "self" or text and parameter.name != "text":
        return ""
    names = [other.name for other in parameters if other.type in COUNTS]
    if "n_" + parameter.name in names:
        return "n_" + parameter.name
    if "size" in names and (text or parameter.type == "const void *"):
        return "size"
    if "n_dims" in names and "MusterExtent" in parameter.type:
        return "n_dims"
    return "n" if "n" in names and not text else ""


def _lines_of(comment):
    """The annotations and the sentence of each "@name: (…) (…): …" of a comment."""
    text = re.sub(r"\n\s*\*(?: |$|(?=\n)|/)", "\n", comment)
    found = {}
    for name, rest in re.findall(r"^@(\w+): ?(.*?)(?=^@\w+:|^\s*$|\Z)", text, re.M | re.S):
        annotations, sentence = re.match(r"((?:\([^)]*\)\s*)*):?\s*(.*)", rest, re.S).groups()
        attributes = re.search(r"\(attributes ([^)]*)\)", annotations)
        pairs = [pair.partition("=")[::2] for pair in attributes[1].split()] if attributes else []
        found[name] = dict(pairs), " ".join(sentence.split())
    return found


def _fields(tokens):
    """Of one declaration: "int a" or "int a, b"."""
    if "(" in tokens:  # a function
        return [Field("", tokens[tokens.index("(") + 2])]
    first, *others = _split([token for token in tokens if token != "const"])
    parameter = _parameter(first)
    return [Field(parameter.type, name, parameter.array) for name in [parameter.name] + [other[0] for other in others]]


def _struct(comment, tokens, header):
    start = tokens.index("{")
    end = len(tokens) - tokens[::-1].index("}") - 1
    name = tokens[end + 1] if tokens[0] == "typedef" else tokens[start - 1].lstrip("_")
    struct, private, member = Struct(name, [], header), False, []
    lines = _lines_of(comment)
    for token in tokens[start + 1:end]:
        if token == PRIVATE:
            private = True
        elif token != ";":
            member.append(token)
        else:
            for one in _fields(member):
                one.private = private
                one.attributes, one.sentence = lines.get(one.name, ({}, ""))
                struct.fields.append(one)
            member = []
    return struct


def _range_of(tokens):
    """The least and the greatest value of an enumeration, without the MUSTER_N_… that counts its values; any union of flags."""
    values, is_flags, last = {}, False, -1
    for enumerator in _split(tokens):
        if not enumerator:
            continue  # behind the last comma
        name, expression = enumerator[0], "".join(enumerator[2:])
        parts = re.fullmatch(r"(-?\d+)(?:<<(\d+))?", expression)
        if expression in values:
            last = values[expression]
        elif expression and not parts:
            raise Unreadable("the value of %s" % name)
        else:
            last = int(parts[1]) << int(parts[2] or 0) if parts else last + 1
        is_flags = is_flags or bool(parts and parts[2])
        values[name] = last
    found = [value for name, value in values.items() if not name.startswith("MUSTER_N_")]
    return (0, functools.reduce(operator.or_, found)) if is_flags else (min(found), max(found))


def read(paths):
    """Every function of the headers, in order; raises Unreadable for a declaration that isn't understood."""
    return read_all(paths).functions


def read_all(paths):
    """What the headers declare, in order; raises Unreadable for a declaration that isn't understood."""
    found = Declarations()
    functions, callbacks = found.functions, found.callbacks
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = _without_preprocessor(file.read())
        for comment, tokens in _statements(text):
            where = "%s: " % path
            try:
                if tokens[0] in IGNORED_MACROS:
                    continue
                if MACRO_TYPES.match(tokens[0]):
                    functions.append(Function(tokens[4] + "_get_type", "GType", [], "", path))
                elif tokens[0].startswith("G_D"):
                    raise Unreadable("macro " + tokens[0])
                elif "{" in tokens and "struct" in tokens[:2]:
                    found.structs.append(_struct(comment, tokens, path))
                elif tokens[0] == "typedef":
                    if "(" in tokens and "{" not in tokens:
                        callbacks.add(tokens[tokens.index("(") + 2])
                    elif tokens[1] == "enum":
                        found.enums[tokens[-2]] = _range_of(tokens[tokens.index("{") + 1:-3])
                elif tokens[0] in ("struct", "enum", "union", "extern") and (
                        "{" in tokens or "(" not in tokens):
                    continue
                elif "static" in tokens:
                    raise Unreadable("static in a header")
                else:
                    functions.append(_function(comment, tokens, path))
            except (Unreadable, ValueError, IndexError) as error:
                raise Unreadable(where + str(error) + " in: " + " ".join(tokens[:30])) from error
    for function in functions:
        for parameter in function.parameters:
            parameter.is_callback = parameter.type in callbacks or parameter.type in ("GDestroyNotify", "GAsyncReadyCallback")
            parameter.nullable = _is_nullable(function, parameter)
            parameter.count = _count_of(parameter, function.parameters)
    return found
