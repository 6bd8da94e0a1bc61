#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""walks.py [ROOT]: each hop of docs/walks.md is a function of its file, which the hop before it calls.

    | 3 | `run ()` | `a/b.c` | 2 | what it does |                 the function of hop 2 calls run ()
    | 4 | `answer ()` | `c/d.c` | 3, through `ask` | … |          hop 3 uses `ask`, and a statement in c/ names `ask` and
                                                                  `answer`, or an earlier hop hands `answer` over
    | 5 | `hear ()` | `e/f.c` | 4, through `func` of `set` | … |  hop 4 uses `func`, as does set () in c/, to which a statement
                                                                  in e/ hands `hear`
"""
import os
import re
import sys

import references

LIST = "docs/walks.md"
ROW = re.compile(r"^\| (\d+) \| `(\w+) \(\)` \| `([\w/.-]+)` \| (?:(\d+)(?:, through `(\w+)`(?: of `(\w+)`)?)?)? ?\| (.+) \|$")
NOISE = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


class Hop:
    def __init__(self, line, match):
        self.line, self.number, self.name, self.path = line, int(match.group(1)), match.group(2), match.group(3)
        self.caller, self.through, self.setter = match.group(4) and int(match.group(4)), *match.group(5, 6)


def walks_of(text):
    """(heading, its hops); rows of a table that aren't hops are an error."""
    walks, problems = [], []
    for line, row in enumerate(text.splitlines(), 1):
        if re.match(r"##+ ", row):
            walks.append((row.lstrip("# "), []))
        elif re.match(r"\| *\d", row):
            match = ROW.match(row)
            if match and walks:
                walks[-1][1].append(Hop(line, match))
            else:
                problems.append("%s:%d: a hop is | NUMBER | `function ()` | `file` | CALLER | sentence |" % (LIST, line))
    return [walk for walk in walks if walk[1]], problems


def body_of(code, name):
    """A function's head and body, as clang-format lays it out; None where the file hasn't got it."""
    match = re.search(r"^%s \([^;{]*\)\n\{\n.*?^\}" % name, code, re.DOTALL | re.MULTILINE)
    return match.group() if match else None


def calls(body, name):
    return re.search(r"\b%s \(" % name, body[body.index("\n{"):]) is not None


def hands(code, name, through):
    """Whether a statement or an initialiser's row has the function, not called, beside what it is known by."""
    return any(re.search(r"\b%s\b(?! \()" % name, part) and re.search(r"\b%s\b" % through, part) for part in re.split(r"[;{}]", code))


def check_handing(hop, hops, codes):
    """What is wrong with the way by which a callback reaches who calls it."""
    caller, beside = hops[hop.caller - 1], codes(os.path.dirname(hop.path), True)
    if hop.setter is not None:
        setters = [body_of(code, hop.setter) or "" for code in codes(os.path.dirname(caller.path), True)]
        if not any(re.search(r"\b%s\b" % hop.through, setter) for setter in setters):
            return "no %s () beside %s uses %s" % (hop.setter, caller.path, hop.through)
        handed = any(hands(code, hop.name, hop.setter) for code in beside)
        return None if handed else "nothing hands %s () to %s ()" % (hop.name, hop.setter)
    before = [body_of(codes(other.path), other.name) or "" for other in hops[:hop.number - 1]]
    handed = any(re.search(r"\b%s\b(?! \()" % hop.name, body) for body in before) or any(
        hands(code, hop.name, hop.through) for code in beside)
    return None if handed else "nothing hands %s () over as %s" % (hop.name, hop.through)


def check_hop(hop, hops, codes):
    """What is wrong with one hop, whose caller stands before it."""
    body = body_of(codes(hop.path), hop.name)
    if body is None:
        return "no function %s () in %s" % (hop.name, hop.path)
    if hop.caller is None:
        return None if hop is hops[0] else "nobody calls %s ()" % hop.name
    if hop.caller >= hop.number:
        return "hop %d isn't before it" % hop.caller
    caller = hops[hop.caller - 1]
    way = body_of(codes(caller.path), caller.name) or ""
    if hop.through is None:
        return None if way and calls(way, hop.name) else "%s () doesn't call %s ()" % (caller.name, hop.name)
    if not re.search(r"\b%s\b" % hop.through, way):
        return "%s () doesn't use %s" % (caller.name, hop.through)
    return check_handing(hop, hops, codes)


def check(root):
    """What is wrong, a line each."""
    read = {}

    def codes(path, is_folder=False):
        if is_folder:
            return [codes(os.path.join(path, name)) for name in sorted(os.listdir(os.path.join(root, path))) if name.endswith(".c")]
        if path not in read:
            text = references.read(root, path) if os.path.isfile(os.path.join(root, path)) else ""
            read[path] = NOISE.sub("", text)
        return read[path]

    walks, problems = walks_of(references.read(root, LIST))
    for name, hops in walks:
        for i, hop in enumerate(hops):
            wrong = check_hop(hop, hops, codes) if hop.number == i + 1 else "hop %d stands at %d" % (hop.number, i + 1)
            if wrong:
                problems.append("%s:%d: %s: %s" % (LIST, hop.line, name, wrong))
    return problems


def main():
    problems = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(problems) if problems else "every hop is there")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
