#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""html_links.py FOLDER: every link, picture, script and anchor in a folder of HTML leads somewhere.

What leads out of the folder isn't fetched, but it may only lead to the hosts in OUTSIDE.
"""
import html.parser
import os
import re
import sys
import urllib.parse

OUTSIDE = {"docs.gtk.org", "gitlab.gnome.org"}
NO_PAGE = ("javascript:", "mailto:", "data:")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.twice, self.links = set(), set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        for anchor in filter(None, {values.get("id"), values.get("name") if tag == "a" else None}):
            if anchor in self.ids:
                self.twice.add(anchor)
            self.ids.add(anchor)
        for name in ("href", "src", "xlink:href"):
            if name in values:
                self.links.append((self.getpos()[0], values[name] or ""))
        refresh = re.match(r"\s*\d+;\s*url=(.*)", values.get("content") or "")
        if tag == "meta" and refresh:
            self.links.append((self.getpos()[0], refresh.group(1)))


def pages_of(folder):
    pages = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as file:
                    pages[os.path.realpath(path)] = Page(file.read())
    return pages


def problem_of(path, link, pages, outside):
    """What is wrong with a link on the page at this path; None if nothing is."""
    if not link:
        return "an empty link"
    if link.startswith(NO_PAGE):
        return "a link that needs a script" if link.startswith("javascript:") else None
    parts = urllib.parse.urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if parts.hostname in outside else "%s isn't a known host" % parts.hostname
    if parts.scheme:
        return "%s: is no scheme for a page" % parts.scheme
    target = os.path.realpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
    if os.path.isdir(target):
        target = os.path.join(target, "index.html")
    if not os.path.exists(target):
        return "no %s" % parts.path
    anchor = urllib.parse.unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].ids:
        return "no anchor %s" % link
    return None


def check(folder, outside=frozenset(OUTSIDE)):
    """(number of pages, number of links, what is wrong)"""
    pages, problems, links = pages_of(folder), [], 0
    for path, page in sorted(pages.items()):
        name = os.path.relpath(path, os.path.realpath(folder))
        problems += ["%s: two elements are called %s" % (name, anchor) for anchor in sorted(page.twice)]
        for line, link in page.links:
            links += 1
            problem = problem_of(path, link, pages, outside)
            if problem:
                problems.append("%s:%d: %s" % (name, line, problem))
    return len(pages), links, problems


def main():
    pages, links, problems = check(sys.argv[1])
    print("\n".join(problems))
    print("%d pages, %d links, %d problems" % (pages, links, len(problems)))
    sys.exit(1 if problems or not pages else 0)


if __name__ == "__main__":
    main()
