# SPDX-License-Identifier: Apache-2.0
"""How the pages look: gi-docgen's own theme with muster's sidebar and index, working from files, without a web server."""
import html
import os
import re
import shutil

import guides

SIDEBAR = """
      <div class="section">
        <div class="links">
          <a href="{0}api.html">The C API</a>
          <a href="{0}overview.html">Overview</a>
          <a href="{0}guides.html">Guides</a>
          <a href="{0}modules.html">Modules</a>
          <a href="{0}class-diagram.html">Class diagram</a>
          <a href="{0}errors.html">Errors by code</a>
          <a href="{0}index.html">Library muster</a>
          <a href="{0}../MusterEngine-0/index.html">Library muster-engine</a>
        </div>
      </div>
"""
STYLE = """
/* muster's */
table.symbols td { vertical-align: top; padding: 0.15em 1.2em 0.15em 0; }
table.symbols td:first-child { white-space: nowrap; }
table.errors td { vertical-align: top; padding: 0.25em 1.2em 0.25em 0; }
table.errors td:first-child { width: 60%; }
@media (max-width: 700px) {
  table:is(.symbols, .errors) :is(tbody, tr, td) { display: block; width: auto !important; border: 0 !important; padding: 0; }
  table:is(.symbols, .errors) tr { padding: 0.4em 0; overflow-wrap: anywhere; }
  table.symbols td:first-child { white-space: normal; }
  #main table:not(.symbols, .errors) { display: block; overflow-x: auto; } }
table td > code { word-break: normal; overflow-wrap: anywhere; }
@media (max-width: 700px) { table td > code { overflow-wrap: break-word; } }
@media (min-width: 701px) { table td:nth-child(2):has(> code) { min-width: 13em; } }
header h1 { flex-wrap: wrap; overflow-wrap: anywhere; }
samp { font-family: inherit; }
.toc { min-width: 24ch; }
.toc nav { margin: 0 1em; }
.toc .link-text { overflow-wrap: break-word; }
.diagram { overflow-x: auto; }
.diagram svg { height: auto; }
.diagram svg * { fill: none; stroke: currentColor; }
.diagram svg text { fill: currentColor; stroke: none; }
.docblock img { max-width: 100%; }
"""
ENTRANCE = """<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="refresh" content="0; url=Muster-0/api.html">
  <title>muster</title>
</head>
<body><a href="Muster-0/api.html">muster's documentation</a></body>
</html>
"""


class Unexpected(Exception):
    """This gi-docgen writes something else than those of Debian 12 and 13."""


def replace(text, old, new, where):
    if old not in text:
        raise Unexpected("%s has no '%s': another gi-docgen than Debian 12's or 13's" % (where, old))
    return text.replace(old, new, 1)


def edit(path, *changes):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for old, new in changes:
        text = replace(text, old, new, path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def prepare(basic, theme, top):
    """A copy of gi-docgen's theme, with muster's parts. top: the folder of muster's pages, as seen from the theme's."""
    shutil.copytree(basic, theme)
    edit(os.path.join(theme, "base.html"),
         ("      {% block sidebar %}", SIDEBAR.format(top) + "      {% block sidebar %}"),
         # A browser reads no JSON from a file: it gets the index as a script.
         ('<script src="search.js"></script>', '<script src="index.js"></script>\n  <script src="search.js"></script>'))
    edit(os.path.join(theme, "content.html"),
         ('<div id="toc" class="toc">', '<div id="toc" class="toc"{% if not (content.toc|length > 1 or (content.toc and '
          'content.toc[0].children)) %} style="display: none"{% endif %}>'))
    edit(os.path.join(theme, "search.js"),
         ("fetchJSON('index.json', onDidLoadSearchIndex);", "onDidLoadSearchIndex(window.searchIndexOfMuster);"))
    with open(os.path.join(theme, "style.css"), "a", encoding="utf-8") as file:
        file.write(STYLE)


def list_of_guides(groups):
    lines = ["Title: Guides", "", "# Guides", ""]
    for name, pages in groups:
        lines += ["## " + name, ""] + ["- [%s](%s)" % (guides.hide(title), page) for page, title in pages] + [""]
    return "\n".join(lines)


def index_section(name, content, hidden=False):
    return ('<section><div class="toggle-wrapper%s"><h4 id="%s" class="section-header" style="display:flex;">%s'
            '<a href="#%s" class="anchor"></a></h4><div class="docblock">\n%s\n</div></div></section>'
            % (" default-hide" if hidden else "", name.lower().replace(" ", "-"), name, name.lower().replace(" ", "-"), content))


def index_sections(groups, modules):
    parts = []
    for name, pages in groups:
        items = "\n".join('<li><a href="%s">%s</a></li>' % (page, html.escape(re.sub("[`*]", "", title))) for page, title in pages)
        parts.append(index_section(name, "<ul>\n%s\n</ul>" % items, hidden=name in ("Decisions", "The project")))
    return "\n".join(parts[:1] + [index_section("Modules", modules)] + parts[1:])


def index_page(text, sections):
    """The index without links to nowhere, and with muster's guides instead of a list of all further pages."""
    text = re.sub(r"\s*<tr><td><em>(?:Website|Source)</em></td>.*?</tr>", "", text)
    start = text.find('<h4 id="extra"')
    if start >= 0:
        begin, end = text.rindex("<section>", 0, start), text.index("</section>", start) + len("</section>")
        text = text[:begin] + text[end:]
        text = replace(text, "</header>", "</header>\n" + sections, "index.html")
    return text


def real_links(text, libraries):
    """Links to other libraries, which gi-docgen leaves to a script."""
    def link(match):
        space, page = (re.search(r'data-%s="([^"]*)"' % name, match.group()) for name in ("namespace", "link"))
        if not space or not page:
            return match.group()
        if space.group(1) not in libraries:
            raise Unexpected("no reference of %s is known" % space.group(1))
        return match.group().replace("javascript:void(0)", libraries[space.group(1)] + page.group(1))

    return re.sub(r"<a\b[^>]*>", link, text)


def finish(folder, sections, libraries, links, top):
    """What gi-docgen has written, with links to other libraries and from names. sections: what
    the index begins with; top: as in prepare ()"""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not name.endswith((".html", ".json", ".devhelp2")):
            continue
        with open(path, encoding="utf-8") as file:
            text = guides.shown(file.read())
        if name.endswith(".html"):
            text = links.page(real_links(text, libraries), name, top)
        if name.startswith(("alias.", "union.")):  # written from the template of structs
            kind, own, _ = name.split(".")
            text = text.replace('href="struct.%s.html' % own, 'href="%s.%s.html' % (kind, own))
        if name == "index.html":
            text = index_page(text, sections)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if name == "index.json":
            with open(os.path.join(folder, "index.js"), "w", encoding="utf-8") as file:
                file.write("window.searchIndexOfMuster = " + text + ";\n")
