#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds bazel/modules.bzl to the includes, and draws it.

    structure.py ROOT            checks; prints what is wrong and exits with 1
    structure.py ROOT --draw     writes the drawing of the folders into README.md

A module is a folder of sources. What is checked: each include of another module's header has an arrow in MODULES, each
arrow has an include, no module stands above one that it uses, no folder has more than 25 sources, and files include one
another in circles only as a type and its parts do: two files, and few of those. Waits for another thread go through
base/wait_private.h.
"""
import collections
import os
import re
import sys

MOST_SOURCES = 25
MOST_CIRCLES = 6
LARGEST_CIRCLE = 2
WAITS = "base/wait.c"
DRAWN_IN = "README.md"
BEGIN, END = "<!-- modules -->\n", "<!-- /modules -->\n"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_modules(root):
    """MODULES of bazel/modules.bzl, which is Python too."""
    scope = {}
    exec(compile(read(os.path.join(root, "bazel/modules.bzl")), "modules.bzl", "exec"), scope)  # pylint: disable=exec-used
    return scope["MODULES"]


def sources_in(folder):
    """The files of a module; //tests/bazel has those of protobuf messages, which include nothing, not beside it."""
    return [] if folder.endswith("/proto") else sorted(os.listdir(folder))


def includes_of(root, module):
    """(file, included) for each include of a project header in a module's folder; generated headers count as includes."""
    found = []
    folder = os.path.join(root, module)
    for name in sources_in(folder):
        if name.endswith((".c", ".h")):
            for included in re.findall(r'^#include "([^"]+)"', read(os.path.join(folder, name)), re.M):
                found.append((module + "/" + name, included))
    return found


def check_arrows(modules, includes):
    wrong = []
    for module, uses in modules.items():
        used = collections.defaultdict(list)
        for file, included in includes[module]:
            used[os.path.dirname(included)].append((file, included))
        used.pop(module, None)
        for other in sorted(set(used) - set(uses)):
            wrong.append("%s includes %s, and bazel/modules.bzl has no arrow from %s to %s" % (used[other][0] + (module, other)))
        for other in uses:
            if other not in used:
                wrong.append("bazel/modules.bzl: the arrow from %s to %s has no include; remove it" % (module, other))
    return wrong


def check_order(modules):
    """The order of MODULES is that of the layers."""
    wrong, above = [], set()
    for module, uses in modules.items():
        wrong += ["bazel/modules.bzl: %s stands above %s, which it uses" % (module, other) for other in uses if other not in above]
        above.add(module)
    return wrong


def check_sizes(root, modules):
    wrong = []
    for module in modules:
        sources = [name for name in sources_in(os.path.join(root, module)) if name.endswith(".c")]
        if len(sources) > MOST_SOURCES:
            wrong.append("%s has %d sources, more than %d" % (module, len(sources), MOST_SOURCES))
    return wrong


def unit_of(path):
    """foo.c, foo.h and foo_private.h are one unit."""
    return re.sub(r"(_private)?\.[ch]$", "", path)


def circles(arrows):
    """The strongly connected components of more than one unit (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(unit):
        index[unit] = low[unit] = len(index)
        stack.append(unit)
        on_stack.add(unit)
        for other in sorted(arrows[unit]):
            if other not in index:
                visit(other)
                low[unit] = min(low[unit], low[other])
            elif other in on_stack:
                low[unit] = min(low[unit], index[other])
        if low[unit] == index[unit]:
            circle = []
            while not circle or circle[-1] != unit:
                circle.append(stack.pop())
                on_stack.discard(circle[-1])
            if len(circle) > 1:
                found.append(sorted(circle))

    sys.setrecursionlimit(10000)
    for unit in sorted(arrows):
        if unit not in index:
            visit(unit)
    return sorted(found)


def check_circles(includes):
    has_source = {unit_of(file) for pairs in includes.values() for file, _ in pairs if file.endswith(".c")}
    of_file = collections.defaultdict(set)
    for pairs in includes.values():
        for file, included in pairs:
            of_file[file].add(included)

    def shared(path):
        """A private header without a source of its own is part of each file that includes it."""
        return path.endswith("_private.h") and unit_of(path) not in has_source

    def reached(path, seen):
        for included in of_file[path] - seen:
            seen.add(included)
            if shared(included):
                reached(included, seen)
        return {included for included in seen if not shared(included)}

    arrows = collections.defaultdict(set)
    for file in [file for file in of_file if not shared(file)]:
        for included in reached(file, set()):
            arrows[unit_of(included)]  # pylint: disable=expression-not-assigned
            if unit_of(file) != unit_of(included):
                arrows[unit_of(file)].add(unit_of(included))
    found = circles(arrows)
    wrong = ["these files include one another in a circle: " + ", ".join(circle) for circle in found if len(circle) > LARGEST_CIRCLE]
    if len(found) > MOST_CIRCLES:
        wrong.append("%d circles of includes, more than %d: %s" % (len(found), MOST_CIRCLES, "; ".join(map(", ".join, found))))
    return wrong


def check_waits(root, modules):
    wrong = []
    for module in modules:
        for name in sources_in(os.path.join(root, module)):
            path = module + "/" + name
            if path.endswith(".c") and path != WAITS and "g_cond_wait_until" in read(os.path.join(root, path)):
                wrong.append("%s calls g_cond_wait_until; use base/wait_private.h" % path)
    return wrong


def check_flags(root, modules):
    """A flag of a struct's field names commands that take their options from fields."""
    wrong, commands, of = [], set(), {}
    for module in modules:
        for name in filter(lambda name: name.endswith((".c", ".h")), sources_in(os.path.join(root, module))):
            text = read(os.path.join(root, module, name))
            commands.update(re.findall(r'muster_flags_new \("([\w-]+)"\)', text))
            for attributes in re.findall(r"@\w+:.*\(attributes ([^)]*\bflag=[^)]*)\)", text):
                of.setdefault(module + "/" + name, set()).update(re.sub(r".*\bof=(\S+).*|.*", r"\1", attributes).split(","))
    for path, named in sorted(of.items()):
        wrong += ["%s: a flag is of the command %s, which takes no options from fields" % (path, command) for command in sorted(named - commands - {""})]
    return wrong


def folders_of(modules):
    """{top folder: the top folders it uses}"""
    folders = {}
    for module, uses in modules.items():
        top = module.split("/")[0]
        folders.setdefault(top, set()).update(other.split("/")[0] for other in uses)
    for top, uses in folders.items():
        uses.discard(top)
    return folders


def reduced(folders):
    """Without the arrows that a longer way says already."""
    def reach(top):
        return set().union(*({other} | reach(other) for other in folders[top])) if folders[top] else set()
    return {top: {other for other in uses if not any(other in reach(via) for via in uses)} for top, uses in folders.items()}


def draw(modules):
    lines = ["```mermaid", "graph TD"]
    arrows = reduced(folders_of(modules))
    for top in reversed(list(arrows)):
        lines += ["  %s --> %s" % (top, other) for other in sorted(arrows[top])]
    return "\n".join(lines + ["```"]) + "\n"


def check_drawing(root, modules):
    text = read(os.path.join(root, DRAWN_IN))
    if BEGIN not in text or END not in text:
        return ["%s: no place for the drawing, between %s and %s" % (DRAWN_IN, BEGIN.strip(), END.strip())]
    if text.split(BEGIN)[1].split(END)[0] != draw(modules):
        return ["%s: the drawing isn't that of bazel/modules.bzl; run: bazel run //:draw" % DRAWN_IN]
    return []


def check(root):
    modules = read_modules(root)
    includes = {module: includes_of(root, module) for module in modules}
    return (check_order(modules) + check_arrows(modules, includes) + check_sizes(root, modules) +
            check_circles(includes) + check_waits(root, modules) + check_flags(root, modules) + check_drawing(root, modules))


def write_drawing(root):
    path = os.path.join(root, DRAWN_IN)
    text = read(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.split(BEGIN)[0] + BEGIN + draw(read_modules(root)) + END + text.split(END)[1])


def main():
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or (sys.argv[1] if len(sys.argv) > 1 else ".")
    if "--draw" in sys.argv:
        write_drawing(root)
        return 0
    wrong = check(root)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
