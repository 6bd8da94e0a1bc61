#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The reader of headers: what it must understand, and what it mustn't pass over."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bazel"))
import declarations


def read(text):
    with tempfile.NamedTemporaryFile("w", suffix=".h") as file:
        file.write(text)
        file.flush()
        return declarations.read([file.name])


class Declarations(unittest.TestCase):

    def test_a_function_is_read_with_its_types(self):
        (function,) = read("const char *const *muster_a_b (MusterA *self,\n   gsize n, const char *const *x, GError **error);")
        self.assertEqual(function.name, "muster_a_b")
        self.assertTrue(function.has_error)
        self.assertEqual([it.name for it in function.parameters], ["self", "n", "x", "error"])
        self.assertEqual([it.is_pointer for it in function.parameters], [True, False, True, True])
        self.assertEqual(function.parameters[2].count, "n")

    def test_the_types_of_a_macro_are_read_as_functions(self):
        (function,) = read("G_DECLARE_FINAL_TYPE (MusterA, muster_a, MUSTER, A, GObject)\n")
        self.assertEqual(function.name, "muster_a_get_type")

    def test_a_comment_says_what_may_be_null_up_to_an_empty_line(self):
        first, second, third = read("/* Takes x (nullable). */\nvoid muster_a (MusterX *x);\nvoid muster_b (MusterX *x);\n\n"
                                    "void muster_c (MusterX *x);\n")
        self.assertTrue(first.parameters[0].nullable)
        self.assertTrue(second.parameters[0].nullable)
        self.assertFalse(third.parameters[0].nullable)

    def test_an_out_parameter_that_yields_null_is_wanted_all_the_same(self):
        yields, optional = read("/** @x: (out) (nullable) */\nvoid muster_a (MusterX **x);\n\n"
                                "/** @x: (out) (optional) (nullable) */\nvoid muster_b (MusterX **x);\n")
        self.assertFalse(yields.parameters[0].nullable)
        self.assertTrue(optional.parameters[0].nullable)

    def test_what_it_does_not_understand_is_an_error(self):
        for text in ("void muster_a (void (*f) (int));", "MUSTER_DECLARE (muster_a)\nint x;", "void muster_a (int) NEW_ATTRIBUTE;",
                     "static inline void muster_a (void) { }\n;", "G_DECLARE_NEW_THING (A, b)\n", "void muster_a (int);",
                     "void other_a (int x);", "void muster_a (int x)"):
            with self.assertRaises(declarations.Unreadable, msg=text):
                read(text)


if __name__ == "__main__":
    unittest.main()
