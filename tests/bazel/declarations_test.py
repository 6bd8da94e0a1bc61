#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The reader of headers: what it must understand, and what it mustn't pass over."""

import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bazel"))
import declarations  # noqa: E402
import fields  # noqa: E402

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../train/training.h"), encoding="utf-8") as header:
    TRAINING = header.read()


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

    def test_a_struct_is_read_with_what_its_comment_says_of_each_field(self):
        with tempfile.NamedTemporaryFile("w", suffix=".h") as file:
            file.write("/**\n * MusterA:\n * @x: (attributes min=0 max=9): how\n *   many\n * @f: (nullable): what\n *\n * A.\n */\n"
                       "typedef struct {\n  int x, y;\n  void (*f) (int);\n  /*< private >*/\n  const char *const *names;\n} MusterA;\n")
            file.flush()
            (struct,) = declarations.read_all([file.name]).structs
        x, y, f, names = struct.fields
        self.assertEqual((struct.name, x.type, x.name, x.attributes, x.sentence), ("MusterA", "int", "x", {"min": "0", "max": "9"}, "how many"))
        self.assertEqual((y.name, f.name, f.type, f.sentence), ("y", "f", "", "what"))
        self.assertEqual((names.type, names.private, x.private), ("char **", True, False))

    def test_an_enumeration_is_read_with_its_least_and_greatest_value(self):
        with tempfile.NamedTemporaryFile("w", suffix=".h") as file:
            file.write("typedef enum { MUSTER_A, MUSTER_B, MUSTER_N_AS, } MusterA;\ntypedef enum { MUSTER_C = -12, MUSTER_D = MUSTER_C, MUSTER_E } MusterC;\n"
                       "typedef enum { /*< flags >*/ MUSTER_F = 1 << 0, MUSTER_G = 1 << 2 } MusterF;\n")
            file.flush()
            self.assertEqual(declarations.read_all([file.name]).enums, {"MusterA": (0, 1), "MusterC": (-12, -11), "MusterF": (0, 5)})
        with self.assertRaises(declarations.Unreadable):
            read("typedef enum { MUSTER_A = OTHER } MusterA;")


class Fields(unittest.TestCase):
    """A table of the fields of train/training.h, to which a setting is added."""

    def table(self, line="", member=""):
        text = TRAINING.replace(" * @until_step:", line + " * @until_step:", 1).replace("  gint64 until_step;", member + "  gint64 until_step;", 1)
        with tempfile.NamedTemporaryFile("w", suffix=".h") as file:
            file.write(text)
            file.flush()
            listed = fields.listed([file.name]) + "".join("struct %s\n" % name for name in set(re.findall(r"Muster\w+", TRAINING))) + "enum MusterMood 0 2\n"
            return fields.source_of(fields.Types(listed, [file.name]), [file.name])

    def test_a_new_setting_is_a_line_and_a_member(self):
        row = '.name = "patience"'
        self.assertNotIn(row, self.table())
        table = self.table(" * @patience: (attributes min=0 max=100): how often to try again\n", "  guint patience;\n")
        (line,) = (line for line in table.splitlines() if row in line)
        self.assertIn(".kind = MUSTER_FIELD_UINT", line)
        self.assertIn(".has_range = TRUE, .min = 0.0L, .max = 100.0L", line)

    def test_what_a_copy_would_share_by_mistake_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "MusterTraining.patience has a type that no public header declares: MusterPatience"):
            self.table(member="  MusterPatience *patience;\n")

    def test_a_flags_help_is_the_first_sentence_with_its_default(self):
        table = self.table(" * @patience: (attributes flag=patience of=train): the number of\n *   tries; 0: as\n"
                           " * before; -1: all (%MUSTER_ALL). What it costs\n", "  gint64 patience;\n")
        self.assertIn('.flag = &(const MusterFieldFlag){"patience", "train", "N", "number of tries (default: as before; -1: all)"}', table)

    def test_a_flag_without_help_or_of_a_field_that_has_no_form_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "the first sentence of MusterTraining.patience is no help for a flag: 'as %MUSTER_PATIENCE'"):
            self.table(" * @patience: (attributes flag=patience): as %MUSTER_PATIENCE\n", "  guint patience;\n")
        with self.assertRaisesRegex(SystemExit, "MusterTraining.patience can't have a flag"):
            self.table(" * @patience: (attributes flag=patience): how\n", "  GBytes *patience;\n")
        for words in ("MUCH", "none|some"):
            with self.assertRaisesRegex(SystemExit, "MusterTraining.mood needs arg=.*, a word for each value of MusterMood"):
                self.table(" * @mood: (attributes flag=mood arg=%s): how\n" % words, "  MusterMood mood;\n")

    def test_an_attribute_that_does_not_exist_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "MusterTraining.patience has the unknown attributes most"):
            self.table(" * @patience: (attributes most=3): how often\n", "  guint patience;\n")


if __name__ == "__main__":
    unittest.main()
