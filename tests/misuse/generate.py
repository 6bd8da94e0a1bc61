# SPDX-License-Identifier: Apache-2.0
"""generate.py HEADER... >calls.inc: a call of every public function, and a table of them (misuse_test.c)."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bazel"))
import declarations  # noqa: E402

INTEGERS = {
    "gboolean", "int", "gint", "guint", "gsize", "gssize", "gint32", "gint64", "guint16", "guint32", "guint64", "gulong", "GType",
    "GQuark", "float", "double"
}
UNSIGNED = {"gsize", "guint"}


def opaque(paths):
    """The names of types that only functions make."""
    declared, defined = set(), set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        declared.update(re.findall(r"typedef struct _\w+ (\w+);", text))
        declared.update(re.findall(r"^G_DECLARE_(?:FINAL_TYPE|DERIVABLE_TYPE|INTERFACE) \((\w+)", text, re.M))
        defined.update(re.findall(r"^struct _(\w+) \{", text, re.M))
    return declared - defined


def enums(paths):
    """The names of types that are numbers: enums."""
    found = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found.update(re.findall(r"typedef enum\s*\{[^}]*\}\s*(\w+);", file.read()))
    return found


class Generator:
    def __init__(self, paths):
        self.functions = declarations.read(paths)
        self.numbers = INTEGERS | enums(paths)
        self.opaque = opaque(paths)

    def _argument(self, i, parameter):
        if parameter.type == "GError **":
            return "misuse_error (call)"
        if parameter.is_callback:
            return "(%s)misuse_function (call, %d)" % (parameter.type, i)
        if parameter.is_pointer:
            kind = parameter.type + ("*" if parameter.array else "")
            return "(%s)misuse_pointer (call, %d)" % (kind, i)
        if parameter.type in self.numbers:
            return "(%s)misuse_number (call, %d)" % (parameter.type, i)
        return "(%s){0}" % parameter.type

    def _kind(self, returns):
        if returns == "void":
            return "MISUSE_NOTHING"
        if returns.endswith("*"):
            return "MISUSE_POINTER"
        if returns == "gboolean":
            return "MISUSE_BOOLEAN"
        return "MISUSE_NUMBER" if returns in self.numbers else "MISUSE_STRUCT"

    def _body(self, function):
        arguments = [self._argument(i, parameter) for i, parameter in enumerate(function.parameters)]
        call = "%s (%s)" % (function.name, ", ".join(arguments))
        kind = self._kind(function.returns)
        if kind == "MISUSE_POINTER":
            return "call->result = (gint64)(guintptr)%s;" % call
        if kind in ("MISUSE_BOOLEAN", "MISUSE_NUMBER"):
            return "call->result = (gint64)%s;" % call
        return "(void)%s;" % call if kind == "MISUSE_STRUCT" else call + ";"

    def _row(self, function):
        parameters = []
        for parameter in function.parameters:
            count = next((i for i, it in enumerate(function.parameters) if it.name == parameter.count), -1)
            is_opaque = parameter.is_pointer and parameter.type.count("*") == 1 and re.findall(r"\w+", parameter.type.replace("const ", ""))[0] in self.opaque
            parameters.append('{"%s", "%s", %d, %d, %d, %d, %d, %d}' % (
                parameter.name, parameter.type + (" []" if parameter.array else ""), parameter.is_pointer, parameter.is_callback,
                bool(is_opaque), parameter.nullable, count, parameter.type in UNSIGNED))
        return '  {"%s", "%s", call_%s, %s, %d, %d, {%s}},' % (
            function.name, function.header, function.name, self._kind(function.returns), function.has_error, len(parameters), ", ".join(parameters) or "{0}")

    def write(self, file, headers):
        for header in headers:
            file.write('#include "%s"\n' % header)
        for function in self.functions:
            file.write("\nstatic void\ncall_%s (MisuseCall *call G_GNUC_UNUSED)\n{\n  %s\n}\n" % (function.name, self._body(function)))
        file.write("\nstatic const MisuseFunction misuse_functions[] = {\n")
        file.write("\n".join(self._row(function) for function in self.functions) + "\n};\n")


def main():
    # As the compiler finds them: from the root.
    headers = sys.argv[1:]
    Generator(headers).write(sys.stdout, headers)


main()
