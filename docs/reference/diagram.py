# SPDX-License-Identifier: Apache-2.0
"""The classes and interfaces as a drawing, by Graphviz: who derives from whom (solid), who implements what (dashed)."""
import html
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import gir


STYLE = 'bgcolor=transparent; node [shape=box, fontname="sans-serif", fontsize=11, height=0.3, margin="0.12,0.04"];'


def read(path):
    """(name in C, kind, what it derives from, what it implements or needs, page) of each class and interface"""
    namespace = ElementTree.parse(path).getroot().find(gir.CORE + "namespace")
    top = "" if namespace.get("name") == "Muster" else "../%s-0/" % namespace.get("name")
    for element in namespace:
        kind = element.tag.replace(gir.CORE, "")
        if kind in ("class", "interface"):
            implements = [c_name(child.get("name"), namespace) for child in element.findall(gir.CORE + "implements")]
            yield (element.get(gir.C + "type"), kind, c_name(element.get("parent") or "", namespace), implements,
                   top + "%s.%s.html" % (gir.TYPES[kind], element.get("name")))


def c_name(name, namespace):
    """Muster.Master -> MusterMaster, GObject.Object -> GObject"""
    if not name:
        return ""
    if "." not in name:
        return namespace.get(gir.C + "identifier-prefixes") + name
    space, name = name.split(".")
    return {"GObject": "G", "Gio": "G", "GLib": "G"}.get(space, space) + name


def dot(types):
    lines = ["digraph classes {", "rankdir=LR; ranksep=0.7; nodesep=0.12;", STYLE, "edge [dir=back, arrowtail=empty, arrowsize=0.7];"]
    known = {name for name, *_ in types}
    for name, kind, parent, implements, page in types:
        lines.append('"%s" [URL="%s", target="_top"%s];' % (name, page, ', style=rounded' if kind == "interface" else ""))
        if parent:
            lines.append('"%s" -> "%s";' % (parent, name))
        lines += ['"%s" -> "%s" [style=dashed];' % (interface, name) for interface in implements if interface in known]
    return "\n".join(lines + ["}"])


def draw(graph, hide):
    """A graph in Graphviz' language as an element of a page."""
    drawn = subprocess.run(["dot", "-Tsvg"], input=graph, stdout=subprocess.PIPE, text=True, check=True).stdout
    drawn = re.sub(r' id="[^"]*"', "", drawn)
    drawn = re.sub(r"<!--.*?-->\n?", "", drawn[drawn.index("<svg"):], flags=re.DOTALL)
    drawn = re.sub(r' xlink:title="[^"]*"| xlink(?=:href)|<title>[^<]*</title>\n?', "", drawn).replace(":href", " href").replace('target="_top"', "")
    return '<div class="diagram">\n%s\n</div>' % hide(drawn).strip()


def of_mermaid(text, hide):
    """A drawing that GitHub makes by Mermaid: arrows as a graph, a sequence of messages as a table."""
    kind, *lines = [line.strip() for line in text.strip("`").split("\n")[1:] if line.strip()]
    if kind == "sequenceDiagram":
        return sequence(lines)
    if not re.match(r"graph|stateDiagram", kind):
        raise SystemExit("docs/reference/diagram.py can't draw '%s'" % kind)
    dots, drawn = 0, []
    for line in lines:
        named = re.fullmatch(r'state "([^"]*)" as (\w+)', line)
        if named:
            drawn.append('"%s" [label="%s"];' % (named.group(2), named.group(1)))
            continue
        arrow = re.fullmatch(r"(\w+|\[\*\]) --> (\w+|\[\*\])(?:: (.*))?", line)
        if not arrow:
            raise SystemExit("docs/reference/diagram.py can't draw '%s'" % line)
        ends = []
        for end in arrow.groups()[:2]:
            if end == "[*]":
                dots, end = dots + 1, "end %d" % dots
                drawn.append('"%s" [label="", shape=circle, width=0.15, height=0.15];' % end)
            ends.append(end)
        drawn.append('"%s" -> "%s" [label="  %s"];' % (*ends, arrow.group(3) or ""))
    return draw("\n".join(["digraph {", STYLE, "edge [fontname=\"sans-serif\", fontsize=10];", *drawn, "}"]), hide)


def sequence(lines):
    names, rows = {}, []
    for line in lines:
        name = re.fullmatch(r"participant (\w+) as (.*)", line)
        message = re.fullmatch(r"(\w+)--?>>(\w+): (.*)", line)
        if name:
            names[name.group(1)] = name.group(2)
        elif message:
            rows.append("<tr><td>%s → %s</td><td>%s</td></tr>" % (
                names[message.group(1)], names[message.group(2)], html.escape(message.group(3), quote=False)))
        else:
            raise SystemExit("docs/reference/diagram.py can't draw '%s'" % line)
    return "<table class=\"symbols\">\n%s\n</table>" % "\n".join(rows)


def markdown(paths, hide):
    types = [kind for path in paths for kind in read(path)]
    return "\n".join(["Title: Class diagram", "", "# Class diagram", "",
                      "A box is a class; a rounded one is an interface. A solid line leads from a class to those that derive "
                      "from it, a dashed one from an interface to those that implement it.", "",
                      draw(dot(types), hide), ""])
