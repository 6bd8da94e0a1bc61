# SPDX-License-Identifier: Apache-2.0
"""make.py --version VERSION --output FOLDER --files FILE… --sources FILE…: writes the reference.

The FILEs are the introspection data, the guides, the public headers and what guides link to; the sources are the C files,
whose errors are listed. gi-docgen writes a page to
each symbol; its warnings are errors. Here it gets the guides as pages, and its links to other libraries become real ones,
so that they need no script.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

import gidocgen

import diagram
import errors
import fragments
import gir
import guides
import links
import modules
import theme

LIBRARIES = {
    "GLib": "https://docs.gtk.org/glib/",
    "GObject": "https://docs.gtk.org/gobject/",
    "Gio": "https://docs.gtk.org/gio/",
    "Muster": "../Muster-0/",
    "MusterEngine": "../MusterEngine-0/",
}
PROJECT = """
[library]
name = "{name}"
version = "{version}"
description = "{description}"
authors = "The muster authors"
license = "Apache-2.0"
devhelp = true
search_index = true

[theme]
show_index_summary = true
show_class_hierarchy = true

[extra]
content_files = [{pages}]
content_images = [{pictures}]

[dependencies."GLib-2.0"]
name = "GLib"
description = "Strings, arrays, errors, variants"
docs_url = "https://docs.gtk.org/glib/"

[dependencies."GObject-2.0"]
name = "GObject"
description = "Objects, boxed types and signals"
docs_url = "https://docs.gtk.org/gobject/"

[dependencies."Gio-2.0"]
name = "Gio"
description = "Cancellables, asynchronous results and files"
docs_url = "https://docs.gtk.org/gio/"
"""
DESCRIPTIONS = {
    "Muster": "Starts and resumes TensorFlow 1-style training jobs: prepares, restores and coordinates their sessions.",
    "MusterEngine": "The master 'local': muster's engine in this process.",
}


def fail(problems):
    sys.exit("\n".join(problems))


def read_texts(paths):
    texts = {}
    for path in paths:
        if not path.endswith((".png", ".svg", ".gir", ".typelib")):
            with open(path, encoding="utf-8") as file:
                texts[re.sub(r"^bazel-out/[^/]+/bin/", "", path)] = file.read()
    return texts


class Reference:
    def __init__(self, version, output, files, sources, work):
        self.version, self.output, self.work = version, output, work
        self.girs = {}
        self.symbols = []
        for path in files:
            if path.endswith(".gir"):
                name, symbols = gir.read(path)
                self.girs[name] = path
                self.symbols += symbols
        self.texts = read_texts(files)
        self.sources = read_texts(sources)
        self.headers = sorted(path for path in self.texts if path.endswith(".h"))
        gir.resolve(self.symbols, self.headers)
        self.pictures = [path for path in files if path.endswith((".png", ".svg"))]
        self.links = links.Links(self.symbols, [path for path in self.texts if path.endswith(".md")],
                                 self.texts["docs/behaviours.md"])
        self.texts["docs/behaviours.md"] = links.numbered(self.texts["docs/behaviours.md"])
        self.content = os.path.join(work, "content")
        self.titles = {}
        os.mkdir(self.content)

    def write_page(self, page, markdown):
        if page in self.titles:
            fail(["two pages are called %s" % page])
        self.titles[page] = markdown.split("\n", 1)[0].split(": ", 1)[1]
        with open(os.path.join(self.content, page.replace(".html", ".md")), "w", encoding="utf-8") as file:
            file.write(markdown)

    def write_guides(self):
        some = guides.Guides({**self.sources, **self.texts}, {header: modules.place_of(header) for header in self.headers})
        documents = [path for path in self.texts if path.endswith(".md")]
        for path in documents:
            self.write_page(guides.page_of(path), some.page(path))
        for path in sorted(some.shown_files):
            self.write_page(guides.page_of(path), some.file_page(path))
        self.groups = [(name, [(guides.page_of(path), guides.title_of(self.texts[path], path)) for path in paths])
                       for name, paths in guides.in_order(documents) if paths]
        self.write_page("guides.html", theme.list_of_guides(self.groups))
        for path in some.pictures:
            if path not in self.pictures:
                some.problems.append("no picture %s" % path)
        if some.problems:
            fail(some.problems)
        return sorted(some.pictures)

    def write_modules(self):
        self.modules = names = modules.modules_of(self.headers)
        for module in names:
            self.write_page(modules.page_of(module), modules.markdown(module, self.headers, self.symbols))
        self.write_page("modules.html", modules.index(names))
        pages = {symbol.name: modules.href_of(symbol) for symbol in self.symbols}
        code = {path: text for path, text in self.sources.items() if path.endswith(".c")}
        self.write_page("errors.html", errors.markdown(
            code, self.symbols, pages, self.texts["docs/api-conventions.md"], self.texts["python/gi/overrides/Muster.py"]))
        self.write_page("class-diagram.html", diagram.markdown(list(self.girs.values()), guides.hide))

    def generate(self, name, pages, pictures):
        """Runs gi-docgen over a namespace."""
        project = os.path.join(self.work, name + ".toml")
        with open(project, "w", encoding="utf-8") as file:
            file.write(PROJECT.format(name=name, version=self.version, description=DESCRIPTIONS[name],
                                      pages=", ".join('"%s"' % page.replace(".html", ".md") for page in pages),
                                      pictures=", ".join('"%s"' % picture for picture in pictures)))
        top = "" if name == "Muster" else "../Muster-0/"
        templates = os.path.join(self.work, "templates-" + name)
        theme.prepare(os.path.join(os.path.dirname(gidocgen.__file__), "templates", "basic"),
                      os.path.join(templates, "basic"), top)
        words = ["gi-docgen", "generate", "--quiet", "--fatal-warnings", "--config", project, "--templates-dir", templates,
                 "--output-dir", self.output, "--content-dir", self.content, "--content-dir", os.getcwd()]
        own = fragments.Fragments(symbol for symbol in self.symbols if symbol.namespace == name)
        path = os.path.join(self.work, os.path.basename(self.girs[name]))
        with open(self.girs[name], encoding="utf-8") as file, open(path, "w", encoding="utf-8") as corrected:
            corrected.write(own.text(file.read()))
        words += ["--add-include-path=" + os.path.dirname(path) for path in self.girs.values()]
        done = subprocess.run(words + [path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0 or "WARNING" in done.stdout:
            fail(["gi-docgen, of %s:" % name, done.stdout])
        sections = theme.index_sections(self.groups, modules.index_table(self.modules)) if name == "Muster" else ""
        theme.finish(os.path.join(self.output, name + "-0"), sections, LIBRARIES, self.links, top)

    def write(self):
        pictures = self.write_guides()
        self.write_modules()
        self.generate("Muster", list(self.titles), pictures)
        self.generate("MusterEngine", [], [])
        with open(os.path.join(self.output, "index.html"), "w", encoding="utf-8") as file:
            file.write(theme.ENTRANCE)


def main():
    if shutil.which("gi-docgen") is None:
        fail(["gi-docgen is not installed: run bazel/setup"])
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--files", nargs="+", required=True)
    parser.add_argument("--sources", nargs="+", required=True)
    arguments = parser.parse_args()
    os.makedirs(arguments.output, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        os.environ["HOME"] = work
        Reference(arguments.version, arguments.output, arguments.files, arguments.sources, work).write()


if __name__ == "__main__":
    main()
