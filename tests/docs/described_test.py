#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every public symbol has a description, but for those in docs/reference/undescribed.txt, and that list is up to date."""
import glob
import os
import sys
import tempfile
import unittest

sys.path.insert(0, "docs/reference")
import described

GIR = """<?xml version="1.0"?>
<repository version="1.2" xmlns="http://www.gtk.org/introspection/core/1.0"
  xmlns:c="http://www.gtk.org/introspection/c/1.0" xmlns:glib="http://www.gtk.org/introspection/glib/1.0">
<namespace name="Muster" version="0">%s</namespace></repository>"""
DOC = "<doc>words</doc>"
RESULT = '<return-value>%s<type name="%s"/></return-value>'
PARAMETER = '<parameters><parameter name="x">%s<type name="gint"/></parameter></parameters>'


def function(doc, parameter, result, kind="gint"):
    return GIR % ('<function name="f" c:identifier="muster_f">%s%s%s</function>'
                  % (doc, RESULT % (result, kind), PARAMETER % parameter))


class Check(unittest.TestCase):
    def missing(self, gir="", **headers):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "Muster-0.gir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(gir or GIR % "")
            return described.undescribed([path], headers)

    def test_a_function_has_a_description_as_have_its_parameters_and_its_result(self):
        self.assertEqual(self.missing(function(DOC, DOC, DOC)), [])
        self.assertEqual(self.missing(function("", DOC, DOC)), ["muster_f"])
        self.assertEqual(self.missing(function(DOC, "", "")), ["muster_f @x", "muster_f Returns"])
        self.assertEqual(self.missing(function(DOC, DOC, "", kind="none")), [])

    def test_fields_and_values_have_descriptions_unless_they_are_private(self):
        record = GIR % ('<record name="R" c:type="MusterR">%s<field name="x">%s</field><field name="y" private="1"/></record>'
                        '<enumeration name="E" c:type="MusterE">%s<member name="a" c:identifier="MUSTER_A">%s</member></enumeration>')
        self.assertEqual(self.missing(record % (DOC, DOC, DOC, DOC)), [])
        self.assertEqual(self.missing(record % ("", "", DOC, "")), ["MUSTER_A", "MusterR", "MusterR.x"])

    def test_what_introspection_leaves_out_is_found_in_the_headers(self):
        header = "%sgboolean muster_g (int x,\n   ...);\n%stypedef struct {\n  int x;\n} MusterS;\n%s#define MUSTER_LIMIT 3\n"
        comments = ["/**\n * %s:\n * words\n */\n" % name for name in ("muster_g", "MusterS", "MUSTER_LIMIT")]
        self.assertEqual(self.missing(a=header % tuple(comments)), [])
        self.assertEqual(self.missing(a=header % ("", "/* words */\n", "")), ["MUSTER_LIMIT", "MusterS", "muster_g"])
        self.assertEqual(self.missing(a="/**\n * muster_g: (skip)\n */\nvoid muster_g (void);\n"), ["muster_g"])
        self.assertEqual(self.missing(a="/**\n * muster_g: (skip)\n * words\n */\nvoid muster_g (void);\n"), [])
        self.assertEqual(self.missing(a="#define MUSTER_TYPE_S (muster_s_get_type ())\nGType muster_s_get_type (void);\n"), [])

    def test_a_function_in_a_struct_is_described_in_its_header(self):
        record = GIR % '<record name="R" c:type="MusterR">%s<field name="x"><callback name="x"/></field></record>' % DOC
        header = "/**\n * MusterR:%s\n * words\n */\ntypedef struct {\n  void (*x) (void);\n} MusterR;\n"
        self.assertEqual(self.missing(record, a=header % "\n * @x: called"), [])
        self.assertEqual(self.missing(record, a=header % ""), ["MusterR.x"])

    def test_the_list_may_only_shrink(self):
        self.assertEqual(described.compare(["a"], ["a"]), [])
        self.assertEqual(len(described.compare(["a", "b"], ["a"])), 1)
        self.assertEqual(len(described.compare([], ["a"])), 1)


class PublicApi(unittest.TestCase):
    def test_no_symbol_is_without_a_description(self):
        girs, headers = described.read_all(glob.glob("*.gir") + glob.glob("*/**/*.h", recursive=True))
        self.assertEqual(len(girs), 2)
        self.assertGreater(len(headers), 60)
        missing = described.undescribed(girs, headers)
        print("%d parts of the public API have no description" % len(missing))
        self.assertEqual(described.compare(missing, described.listed()), [])


if __name__ == "__main__":
    unittest.main()
