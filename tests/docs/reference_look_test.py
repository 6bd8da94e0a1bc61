#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reference in headless Chromium, opened as files: narrow and wide, light and dark; and its search.

    reference_look_test.py [DIRECTORY]     also writes a picture of each page into DIRECTORY
"""
import os
import sys
import tempfile
import time
import unittest

sys.path.insert(0, "tests/page")
import browser

HTML = os.path.realpath("docs/html")
PAGES = ("index", "overview", "operating", "modules", "module-saver", "class.Session", "struct.SaverOptions", "method.Saver.save",
         "error.Error", "errors", "class-diagram", "getting-started", "api", "method.SessionManager.wait_for_session")
WIDTHS = (400, 1400)
PICTURES = sys.argv.pop() if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else None
# Text that the window cuts off: what isn't in a box that scrolls.
CUT_OFF = """[...document.querySelectorAll('#main p, #main h1, #main h2, #main h4, #main li, #main td')].filter(e =>
  e.offsetParent && !e.closest('pre, .codehilite, .diagram, table') && (e.getBoundingClientRect().right > innerWidth + 1 ||
  e.scrollWidth > e.clientWidth + 1)).length"""


@unittest.skipUnless(browser.CHROMIUM, "Chromium isn't installed: Debian has it in the package chromium")
class Look(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Chromium writes on while it ends
        self.addCleanup(folder.cleanup)
        self.browser = browser.Browser(os.path.join(folder.name, "profile"))
        self.addCleanup(self.browser.end)

    def until(self, what, expression):
        end = time.monotonic() + browser.PATIENCE
        while not self.browser.value(expression):
            self.assertLess(time.monotonic(), end, "not within a minute: " + what)
            time.sleep(0.05)

    def open(self, page, width, scheme):
        self.browser.look("file://%s/Muster-0/%s.html" % (HTML, page), width, scheme)
        self.until(page, "document.readyState == 'complete' && location.href.endsWith('/%s.html')" % page)

    def test_pages_fit_and_have_no_errors(self):
        for page in PAGES:
            for width in WIDTHS:
                for scheme in ("light", "dark"):
                    with self.subTest(page=page, width=width, scheme=scheme):
                        self.open(page, width, scheme)
                        if PICTURES:
                            self.browser.picture(os.path.join(PICTURES, "%s-%d-%s.png" % (page, width, scheme)))
                        self.assertEqual(self.browser.value(CUT_OFF), 0)
                        self.assertEqual(self.browser.complaints, [])

    def test_the_search_finds_a_function(self):
        self.open("index", 1400, "light")
        self.browser.value("document.querySelector('#search-input').value = 'saver_save';"
                           "document.querySelector('#search-input').dispatchEvent(new Event('keyup'))")
        self.until("results", "document.querySelector('#search a[href*=\"method.Saver.save.html\"]') != null")
        self.assertEqual(self.browser.complaints, [])

    def test_the_entrance_leads_to_the_first_page(self):
        self.browser.look("file://%s/index.html" % HTML, 1400, "light")
        self.until("the first page", "location.href.endsWith('/Muster-0/api.html')")


if __name__ == "__main__":
    unittest.main()
