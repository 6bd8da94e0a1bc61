# SPDX-License-Identifier: Apache-2.0
"""A page to each module: its headers, and what they declare."""
import html
import re

import gir

ABOUT = {
    "base": "Errors, clocks, cancellation, logs: what every other module uses.",
    "graph": "Graphs, tensors, types and the MetaGraphDef files that hold a model.",
    "checkpoint": "Checkpoint files, their index and the directory's state, and the storage that they are in.",
    "rpc": "Calls over the network: TLS, tokens, limits.",
    "master": "Masters and their sessions: steps, leases, announcements, and the client of a remote master.",
    "ready": "Whether a model is ready, and what it waits for.",
    "saver": "Saving and restoring variables, at once or in the background, in tiers, with retention.",
    "session": "The session manager: prepares, restores and waits for sessions.",
    "train": "Monitored sessions, hooks, positions in the data, preemption, goodput, and training as a whole.",
    "callbacks": "Backup and restore around a training loop of one's own, as Keras has it.",
    "jobs": "Jobs of epochs on several nodes, as Caffe2 has them.",
    "tensorflow": "TensorFlow's runtime as a master.",
    "engine": "The master `local`: muster's engine in this process. It is in libmuster-engine.",
}
TYPES = ("class", "interface", "record", "union", "enumeration", "bitfield", "alias", "callback")


def page_of(module):
    return "module-%s.html" % module


def place_of(header):
    return "%s#%s" % (page_of(header.split("/")[0]), anchor_of(header))


def anchor_of(header):
    return re.sub(r"[/.]", "", header)  # as gi-docgen makes it of the heading


def modules_of(headers):
    """The modules that have public headers, in the order of ABOUT."""
    found = {header.split("/")[0] for header in headers}
    missing = found - set(ABOUT)
    if missing:
        raise SystemExit("docs/reference/modules.py says nothing about %s" % ", ".join(sorted(missing)))
    return [module for module in ABOUT if module in found]


def in_html(doc):
    """A sentence of a description as HTML, with gi-docgen's marks replaced."""
    text = re.sub(r"(?:\[([\w\s,\-_:]+)\])?\[`?\w+@([\w\-_:.]+)`?\]", lambda m: m.group(1) or "`%s`" % m.group(2), doc)
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r"(?<![\w.`])[@%#](\w+)", r"`\1`", text)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def href_of(symbol):
    """Of a page in MusterEngine-0 or Muster-0, from a page in Muster-0."""
    return symbol.page if symbol.namespace == "Muster" else "../%s-0/%s" % (symbol.namespace, symbol.page)


def row(symbol):
    name = symbol.name + (" ()" if symbol.kind in ("function", "method", "constructor") else "")
    return '<tr><td><a href="%s"><code>%s</code></a></td><td>%s</td></tr>' % (
        href_of(symbol), html.escape(name), in_html(gir.summary(symbol.doc)))


def table(symbols):
    return "<table class=\"symbols\">\n%s\n</table>\n" % "\n".join(row(symbol) for symbol in symbols)


def markdown(module, headers, symbols):
    """A module's page. Its headers are those of its folder and of its subfolders."""
    lines = ["Title: Module %s" % module, "", "# Module %s" % module, "", ABOUT[module], ""]
    for header in sorted((header for header in headers if header.split("/")[0] == module),
                         key=lambda header: (header.count("/"), header)):
        own = [symbol for symbol in symbols if symbol.header == header and symbol.kind not in gir.PARTS
               and symbol.kind not in ("virtual-method", "property", "signal")]
        lines += ["## `%s`" % header, ""]
        types = [symbol for symbol in own if symbol.kind in TYPES]
        others = [symbol for symbol in own if symbol.kind not in TYPES]
        if not own:
            lines += ["Described in the header itself.", ""]
        for some in (types, others):
            if some:
                lines += [table(sorted(some, key=lambda symbol: symbol.line)), ""]
    return "\n".join(lines)


def index_table(modules):
    rows = "\n".join('<tr><td><a href="%s">%s</a></td><td>%s</td></tr>' % (page_of(module), module, in_html(ABOUT[module]))
                     for module in modules)
    return "<table class=\"symbols\">\n%s\n</table>" % rows


def index(modules):
    return "Title: Modules\n\n# Modules\n\n%s\n" % index_table(modules)
