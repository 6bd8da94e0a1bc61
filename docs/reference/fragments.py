# SPDX-License-Identifier: Apache-2.0
"""The kinds in links of comments: [func@Hook.new] where gi-docgen wants [ctor@Hook.new].

Whether introspection takes a function for a method, a constructor or a function of a type follows from its signature, and
a struct may become a class. So a comment's link may have another kind; the name decides. A name that doesn't exist stays,
and gi-docgen refuses it.
"""
import re

LINK = re.compile(r"\[(`?)(\w+)@((?:Muster|MusterEngine)\.)?([A-Za-z_][\w.]*)(`?)\]")


class Fragments:
    """Of one namespace, whose names stand without it."""

    def __init__(self, symbols):
        self.kinds, self.by_c_name = {}, {}
        for symbol in symbols:
            kind, _, name = symbol.page.removesuffix(".html").partition(".")
            kind = {"type_func": "func"}.get(kind, kind)
            self.kinds.setdefault(name, set()).add(kind)
            self.by_c_name.setdefault(symbol.name, (kind, name))

    def correct(self, match):
        before, kind, namespace, name, after = match.groups()
        kinds = self.kinds.get(name)
        if kinds is None:
            own = self.by_c_name.get("muster_" + name.replace(".", "_").lower())
            if own is None or kind not in ("func", "method", "ctor"):
                return match.group()
            kind, name = own
        elif kind not in kinds and len(kinds) == 1:
            kind = next(iter(kinds))
        return "[%s%s@%s%s%s]" % (before, kind, namespace or "", name, after)

    def text(self, text):
        return LINK.sub(self.correct, text)
