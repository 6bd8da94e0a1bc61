# SPDX-License-Identifier: Apache-2.0
"""The guides as pages of the reference: their names, their order, and their Markdown as gi-docgen reads it.

gi-docgen takes @x, #X and %X for names in comments, also within code. What isn't meant so is kept from it by characters
of the private use area, which shown () replaces again in what it has written.
"""
import os
import re

import diagram

HIDDEN = {"@": "\ue000", "#": "\ue001", "%": "\ue002"}
FENCED = re.compile(r"^```[^\n]*\n.*?^```[ \t]*$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
LINK = re.compile(r"(?<=\[)([^\[\]]*)\]\(([^)\s]+)\)")
REFERENCE = re.compile(r"(?:\[[\w\s,\-_:]+\])?\[`?\w+@[\w\-_:.]+`?\]")

# What the index lists first, in this order; the others of a folder follow by name.
FIRST = ["docs/api.md", "README.md", "docs/getting-started.md", "docs/concepts.md", "docs/python.md", "docs/operating.md",
         *("docs/operating/%s.md" % part for part in ("starting", "elastic", "watching", "stopping", "saving", "checkpoints", "recovery",
                                                      "sizing", "upgrading", "trouble", "tensorflow")),
         "docs/debugging.md",
         "docs/jobs.md", "docs/cluster.md", "docs/serving.md", "docs/security.md", "docs/api-conventions.md", "docs/compatibility.md",
         "docs/checkpoint-format.md", "docs/architecture.md", "docs/walks.md", "docs/behaviours.md"]
GROUPS = [("Guides", r"README\.md|docs/(?:operating/)?[^/]+\.md"), ("Porting", r"docs/porting/.*\.md"),
          ("Decisions", r"docs/decisions/.*\.md"), ("The project", r".*\.md")]


def shown(text):
    for character, hidden in HIDDEN.items():
        text = text.replace(hidden, character)
    return text


def page_of(path):
    """The HTML file of a guide, or of another file that a guide links to."""
    stem, extension = os.path.splitext(path)
    if extension != ".md":
        return "file-" + path.lower().replace("/", "-").replace(".", "-") + ".html"
    if stem == "README":
        return "overview.html"
    stem = stem.removeprefix("docs/") if stem.startswith("docs/") else "project-" + stem.lower()
    return stem.replace("/", "-").lower() + ".html"


def group_of(path):
    return next(name for name, pattern in GROUPS if re.fullmatch(pattern, path))


def in_order(paths):
    """(group, its pages) in the index's order."""
    paths = sorted(paths, key=lambda path: (FIRST.index(path) if path in FIRST else len(FIRST), path))
    return [(name, [path for path in paths if group_of(path) == name]) for name, _ in GROUPS]


def headings(text):
    return re.findall(r"^#+ +(.*?) *$", FENCED.sub("", text), re.MULTILINE)


def title_of(text, path):
    if path == "README.md":
        return "Overview"
    found = headings(text)
    return re.sub(r"[`*]", "", found[0]) if found else path


def unique(slugs, separator):
    """Both number a heading that is there already; python-markdown begins with _1, GitHub with -1."""
    seen, result = {}, []
    for slug in slugs:
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        result.append("%s%s%d" % (slug, separator, number) if number else slug)
    return result


def anchors(text):
    """GitHub's anchor of each heading -> the reference's."""
    from markdown.extensions.toc import slugify
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings(text)]
    github = unique([re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles], "-")
    ours = unique([slugify(re.sub(r"[`*]", "", title), "-") for title in titles], "_")
    return dict(zip(github, ours))


class Guides:
    """texts: path -> text of every file that may be shown; headers: header -> its place in the modules' pages"""

    def __init__(self, texts, headers):
        self.texts, self.headers = texts, headers
        self.shown_files, self.pictures, self.problems = set(), set(), []
        self.anchors = {path: anchors(text) for path, text in texts.items() if path.endswith(".md")}

    def target(self, path, link):
        """Where a link of this guide goes in the reference."""
        if re.match(r"[a-z]+:", link):
            return link
        name, _, anchor = link.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if file.endswith((".png", ".svg")):
            self.pictures.add(file)
            return os.path.basename(file)
        if file in self.headers:
            return self.headers[file]
        if file in self.texts:
            if not file.endswith(".md"):
                self.shown_files.add(file)
            elif anchor and anchor not in self.anchors[file]:
                self.problems.append("%s: no heading #%s in %s" % (path, anchor, file))
            here = self.anchors.get(file, {}).get(anchor, anchor)
            return (page_of(file) if name else "") + ("#" + here if here else "")
        if any(other.startswith(file + "/") for other in self.texts):
            return "guides.html#" + group_of(file + "/x.md").lower().replace(" ", "-")
        self.problems.append("%s links to %s, which //docs doesn't have among its srcs" % (path, file))
        return link

    def words(self, path, text, link):
        """A link's text; the page's title where it is the file's name."""
        file = os.path.normpath(os.path.join(os.path.dirname(path), link.partition("#")[0]))
        if file in self.texts and file.endswith(".md") and text.strip("`") in (file, os.path.basename(file), link):
            return title_of(self.texts[file], file)
        return text

    def prose(self, path, text):
        text = COMMENT.sub("", text)
        text = LINK.sub(lambda link: "%s](%s)" % (self.words(path, *link.groups()), self.target(path, link.group(2))), text)
        text = re.sub(r"`[^`]+`", lambda code: hide(code.group()), text)
        parts, at = [], 0
        for reference in REFERENCE.finditer(text):
            parts += [hide(text[at:reference.start()]), reference.group()]
            at = reference.end()
        return "".join(parts) + hide(text[at:])

    def page(self, path):
        """A guide's Markdown for gi-docgen."""
        text, parts, at = self.texts[path], [], 0
        for block in FENCED.finditer(text):
            if block.group().startswith("```mermaid"):
                parts += [self.prose(path, text[at:block.start()]), diagram.of_mermaid(block.group(), hide)]
                at = block.end()
                continue
            parts += [self.prose(path, text[at:block.start()]), REFERENCE.sub(lambda m: hide(m.group()), block.group())]
            at = block.end()
        return "Title: %s\n\n%s" % (hide(title_of(text, path)), "".join(parts) + self.prose(path, text[at:]))

    def file_page(self, path):
        """A file that a guide links to, as a page."""
        language = {".c": "c", ".h": "c", ".py": "python", ".sh": "bash", ".yaml": "yaml", ".yml": "yaml",
                    ".json": "json", ".bzl": "python"}.get(os.path.splitext(path)[1], "text")
        if os.path.basename(path).startswith("Containerfile"):
            language = "docker"
        block = "```%s\n%s\n```\n" % (language, self.texts[path].rstrip("\n"))
        return "Title: %s\n\n# %s\n\n%s" % (path, path, REFERENCE.sub(lambda m: hide(m.group()), block))


def hide(text):
    """Keeps from gi-docgen what it would take for a name: @x, %X, and #X but for a heading's mark."""
    text = re.sub(r"@(?=\w)", HIDDEN["@"], text)
    text = re.sub(r"#(?=[A-Z])", HIDDEN["#"], text)
    return re.sub(r"%(?=[A-Z0-9_])", HIDDEN["%"], text)
