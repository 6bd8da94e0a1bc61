#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The reference as `bazel build //docs` writes it: every link leads somewhere, and pages hold what they should."""
import os
import re
import sys
import tempfile
import unittest

sys.path[:0] = ["tests/docs", "docs/reference"]
import errors
import fragments
import gir
import html_links
import links

HTML = "docs/html"


def page(name):
    with open(os.path.join(HTML, name), encoding="utf-8") as file:
        return file.read()


class Links(unittest.TestCase):
    def problems(self, **pages):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in pages.items():
                with open(os.path.join(folder, name + ".html"), "w", encoding="utf-8") as file:
                    file.write(text)
            return html_links.check(folder)[2]

    def test_what_leads_nowhere_is_found(self):
        for bad in ('<a href="none.html">', '<a href="#none">', '<a href="b.html#none">', '<a href="">', '<img src="no.png">',
                    '<a href="javascript:void(0)">', '<a href="https://example.com/">', '<a href="file:///etc/passwd">',
                    '<i id="x"></i><i id="x"></i>', '<script src="no.js"></script>',
                    '<meta http-equiv="refresh" content="0; url=none.html">'):
            self.assertEqual(len(self.problems(a=bad, b='<i id="here">')), 1, bad)
        for good in ('<a href="b.html#here">', '<i id="x"></i><a href="#x">', '<a href="https://docs.gtk.org/glib/">', '<a href="b.html">'):
            self.assertEqual(self.problems(a=good, b='<i id="here">'), [], good)

    def test_every_link_of_the_reference_leads_somewhere(self):
        pages, links, problems = html_links.check(HTML)
        print("%d pages, %d links" % (pages, links))
        self.assertEqual(problems, [])
        self.assertGreater(pages, 300)


SOURCE = """static gboolean
open_it (const char *path, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_NOT_FOUND, /* no // comment */ "no file '%s' at grpc://%-5.2f, %" G_GSIZE_FORMAT
                      " of 100 %%", path, 1.0, (gsize) 2);
}

gboolean
muster_a (GError **error)
{
  return open_it ("(", error);
}
"""


CONDITIONAL = """gboolean
muster_a (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_NOT_FOUND, is_here (":?") ? "no file" : *at == '?' ? "no folder: "
                      "%s" : "no store?", at);
}
"""


class Errors(unittest.TestCase):
    def names(self):
        found = errors.index({"saver/a.c": SOURCE, "graph/b.c": "void\nmuster_b (void)\n{\n  muster_a (NULL);\n}\n"},
                             [gir.Symbol("Muster", "function", name, "", "", "", 0) for name in ("muster_a", "muster_b")])
        return found["NOT_FOUND"]

    def test_a_message_has_the_public_functions_of_its_module_that_fail_with_it(self):
        self.assertEqual(self.names(), {"no file '…' at grpc://…, … of 100 %": ("saver", {"muster_a"})})


    def test_both_texts_of_a_conditional_expression_are_messages(self):
        found = errors.index({"saver/a.c": CONDITIONAL}, [gir.Symbol("Muster", "function", "muster_a", "", "", "", 0)])
        self.assertEqual(list(found["NOT_FOUND"]), ["no file", "no folder: …", "no store?"])

    def test_what_a_macro_adds_is_left_out_as_a_value_is(self):
        for written, read in (('"no file; " HINT', "no file; …"), ('"op \'" PREFIX "%s\' is missing"', "op '…' is missing"),
                              ('"in %" G_GINT64_FORMAT " s"', "in … s"), ('"of MUSTER %d"', "of MUSTER …")):
            self.assertEqual(errors.message_of(written), read)


class KindsOfLinks(unittest.TestCase):
    def test_the_name_decides(self):
        def symbol(kind, name, page):
            return gir.Symbol("Muster", kind, name, page, "", "", 0)

        own = fragments.Fragments([symbol("class", "MusterHook", "class.Hook.html"),
                                   symbol("constructor", "muster_hook_new", "ctor.Hook.new.html"),
                                   symbol("function", "muster_hook_claim", "type_func.Hook.claim.html")])
        for text, right in (("[struct@Hook]", "[class@Hook]"), ("[func@Hook.new]", "[ctor@Hook.new]"), ("[func@hook_new]", "[ctor@Hook.new]"),
                            ("[method@Hook.claim]", "[func@Hook.claim]"), ("[class@Muster.Hook]", "[class@Muster.Hook]")):
            self.assertEqual(own.text(text), right)
        for same in ("[class@None]", "[func@Hook.none]", "[class@Gio.File]", "[method@Gio.File.hook_new]"):
            self.assertEqual(own.text(same), same)


class NamesInText(unittest.TestCase):
    def test_names_become_links_outside_of_links_and_headings(self):
        some = links.Links([gir.Symbol("Muster", "class", "MusterA", "class.A.html", "", "", 0),
                            gir.Symbol("MusterEngine", "function", "muster_e", "func.e.html", "", "", 0)],
                           ["docs/jobs.md", "docs/decisions/0007-x.md"], "| B002.17 | it | |\n")
        page = lambda text, own="x.html", top="": some.page(text, own, top)
        self.assertEqual(page("a MusterA*"), 'a <a href="class.A.html">MusterA</a>*')
        self.assertEqual(page("a MusterA", own="class.A.html"), "a MusterA")
        self.assertEqual(page("docs/jobs.md,"), '<a href="jobs.html">docs/jobs.md</a>,')
        self.assertEqual(page("docs/decisions/0007"), '<a href="decisions-0007-x.html">docs/decisions/0007</a>')
        self.assertEqual(page("B002.17."), '<a href="behaviours.html#B002.17">B002.17</a>.')
        self.assertEqual(page("muster_e", top="../Muster-0/"), '<a href="func.e.html">muster_e</a>')
        self.assertEqual(page("MusterA", top="../Muster-0/"), '<a href="../Muster-0/class.A.html">MusterA</a>')
        self.assertEqual(page("<code>NOT_FOUND</code>"), '<a href="errors.html#not_found"><code>NOT_FOUND</code></a>')
        self.assertEqual(page("(ABORTED)"), '(<a href="errors.html#aborted">ABORTED</a>)')
        self.assertEqual(page('<p>Muster_a () is <span class="caps">B002</span>.17'),
                         '<p>muster_a () is <a href="behaviours.html#B002.17">B002.17</a>')
        for same in ('<a href="y">MusterA</a>', "<h2>MusterA</h2>", '<i title="MusterA">', "B002.18", "MusterAb", "x_MusterA"):
            self.assertEqual(page(same), same)


class Pages(unittest.TestCase):
    def test_the_guides_are_pages(self):
        index = page("Muster-0/index.html")
        for guide in ("api", "overview", "concepts", "operating", "operating-saving", "serving", "api-conventions", "decisions-0001-c11-and-glib"):
            self.assertIn('href="%s.html"' % guide, index)

    def test_the_page_of_the_api_is_the_first(self):
        self.assertIn('url=Muster-0/api.html"', page("index.html"))
        self.assertLess(page("Muster-0/index.html").index('<li><a href="api.html">'), page("Muster-0/index.html").index('<li><a href="overview.html">'))

    def test_what_a_guide_says_to_the_test_of_its_code_is_not_shown(self):
        for name in os.listdir(os.path.join(HTML, "Muster-0")):
            if name.endswith(".html"):
                self.assertNotRegex(page("Muster-0/" + name), r"<!-- (?:not run|before|around|follows)|[\ue000-\ue00f]", name)

    def test_code_of_a_guide_stays_as_it_is(self):
        text = re.sub(r"<[^>]+>", "", page("Muster-0/overview.html"))
        self.assertIn("--feed=x:0=@images.npy", text)
        self.assertIn("<code>[class@Name]</code>", page("Muster-0/project-contributing.html"))

    def test_drawings_are_drawn(self):
        self.assertRegex(page("Muster-0/overview.html"), r"(?s)<svg.*>session</text>.*</svg>")
        concepts = page("Muster-0/concepts.html")
        self.assertIn("<td>worker → master</td>", concepts)
        self.assertRegex(concepts, r"(?s)<svg.*>initialising</text>.*</svg>")
        self.assertNotIn("participant", concepts)

    def test_a_link_to_a_header_leads_to_its_module(self):
        self.assertRegex(page("Muster-0/operating-saving.html"), r'href="module-\w+\.html#\w+h"')

    def test_a_module_lists_what_its_headers_declare(self):
        module = page("Muster-0/module-saver.html")
        self.assertIn('<a href="class.Saver.html"><code>MusterSaver</code></a>', module)
        self.assertIn("muster_saver_save ()", module)
        self.assertIn('href="../MusterEngine-0/', page("Muster-0/module-engine.html"))

    def test_each_code_of_an_error_has_what_to_do_and_who_fails_with_it(self):
        text = page("Muster-0/errors.html")
        codes = re.findall(r'<h2 id="\w+">([A-Z_]+)<', text)
        self.assertEqual(codes, errors.NUMBERS)
        self.assertEqual(len(re.findall(r"<code>MUSTER_ERROR_\w+</code>, \d+; in Python (?:<code>[\w.]+</code>(?:, )?)+\. [A-Z]", text)), len(codes))
        self.assertRegex(text, r"<samp>'…' has no '…', and the graph has no initializer for it</samp></td><td>.*muster_saver_restore")
        self.assertIn("<code>Muster.DeadlineExceeded</code>, <code>Muster.NotReady</code>", text)
        self.assertGreater(text.count("<samp>"), 300)

    def test_every_class_is_in_the_diagram(self):
        text = page("Muster-0/class-diagram.html")
        for name in os.listdir(os.path.join(HTML, "Muster-0")):
            if name.startswith(("class.", "iface.")):
                self.assertIn('<a href="%s"' % name, text)
        self.assertIn('<a href="../MusterEngine-0/class.Master.html"', text)

    def test_the_search_needs_no_web_server(self):
        self.assertIn('src="index.js"', page("Muster-0/index.html"))
        self.assertNotIn("fetchJSON('index.json'", page("Muster-0/search.js"))
        self.assertIn('"muster_saver_save"', page("Muster-0/index.js"))


if __name__ == "__main__":
    unittest.main()
