# SPDX-License-Identifier: Apache-2.0
"""Links in all text: from the names of symbols, guides, decisions, behaviours and codes of errors to their pages."""
import re

import errors
import guides
import modules

TOKEN = re.compile(r"(<!--.*?-->|<[^>]*>)", re.DOTALL)
TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
# Where no link is made: within links, headings, drawings and what isn't shown.
WITHOUT = {"a", "title", "script", "style", "svg", "h1", "h2", "h3", "h4", "h5", "h6", "button", "nav"}
NUMBER = r"(?:B00[0-4]|D00[034]|SAV|MON|DMON|DIFF)\.[0-9]+"
NAME = re.compile(r"(?<![\w./-])(?:(muster_\w+|Muster[A-Z]\w*|MUSTER_\w+)|docs/([\w/-]+\.md)|docs/decisions/(\d{4})\b(?!-)|(%s)\b"
                  r"|((?:%s))(?!\w))" % (NUMBER, "|".join(errors.NUMBERS)))
CODE = re.compile(r"(?<!>)<code>(%s)</code>" % "|".join(errors.NUMBERS))
ROW = re.compile(r"^\| (%s) \|" % NUMBER, re.MULTILINE)


def numbered(text):
    """docs/behaviours.md with an anchor for each number."""
    return ROW.sub(r'| <a id="\1"></a>\1 |', text)


class Links:
    """paths: the guides; numbers: those of docs/behaviours.md"""

    def __init__(self, symbols, paths, behaviours):
        self.pages = {symbol.name: modules.href_of(symbol) for symbol in symbols}
        self.pages.update(("MUSTER_ERROR_" + code, "errors.html#" + code.lower()) for code in errors.NUMBERS)
        self.guides = {path: guides.page_of(path) for path in paths}
        self.decisions = {path.split("/")[2][:4]: page for path, page in self.guides.items()
                          if path.startswith("docs/decisions/")}
        self.numbers = set(ROW.findall(behaviours))

    def target(self, match):
        symbol, guide, decision, number, code = match.groups()
        if code:
            return "errors.html#" + code.lower()
        if number:
            return "behaviours.html#" + number if number in self.numbers else None
        return self.pages.get(symbol) or self.guides.get("docs/%s" % guide) or self.decisions.get(decision)

    def text(self, text, own, top):
        def link(match):
            target = self.target(match)
            if not target or target.split("#")[0] == own:
                return match.group()
            return '<a href="%s">%s</a>' % (top + target if not target.startswith("../") or not top else
                                            target.replace("../MusterEngine-0/", ""), match.group())
        return NAME.sub(link, text)

    def page(self, text, own, top):
        """own: the page's name; top: muster's folder as seen from its folder"""
        if own != "errors.html":
            text = CODE.sub(lambda code: '<a href="%serrors.html#%s">%s</a>' % (top, code.group(1).lower(), code.group()), text)
        # gi-docgen marks words of capitals, and begins every description with a capital.
        text = re.sub(r'<span class="caps">([^<]*)</span>', r"\1", text)
        text = re.sub(r"\bMuster_(?=[a-z])", "muster_", text)
        parts, inside = [], []
        for part in TOKEN.split(text):
            tag = TAG.match(part)
            if tag and tag.group(2).lower() in WITHOUT and not part.endswith("/>"):
                if not tag.group(1):
                    inside.append(tag.group(2).lower())
                elif tag.group(2).lower() in inside:
                    del inside[len(inside) - 1 - inside[::-1].index(tag.group(2).lower()):]
            elif not inside and not part.startswith("<"):
                part = self.text(part, own, top)
            parts.append(part)
        return "".join(parts)
