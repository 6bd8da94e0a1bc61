#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A new setting is a member of a struct in a header and a line of its comment. tests/cli/BUILD adds `patience` so to a copy of
tests/base/sample.h: everything else that a setting has is made of it."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

SETTING = os.path.abspath("tests/cli/setting")
SENTENCE = "number of times to try again"
PATIENCE = 60


def run(*words):
    done = subprocess.run([SETTING, "try", *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout, done.stderr


def made(script, *words):
    """What a script of packaging/ makes of the command."""
    return subprocess.run([sys.executable, "-B", "packaging/" + script, SETTING, *words],
                          capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


class NewSetting(unittest.TestCase):
    def write(self, text):
        with tempfile.NamedTemporaryFile("w", dir="/tmp", delete=False) as file:
            file.write(text)
        self.addCleanup(os.unlink, file.name)
        return file.name

    def refuses(self, said, *words):
        code, _, err = run(*words)
        self.assertEqual((code, said in err), (3, True), err)

    def test_has_a_flag(self):
        self.assertEqual(run("--patience=7")[:2], (0, "patience 7 name - share 0 part - colour 0\n"))
        self.assertEqual(run()[:2], (0, "patience 0 name - share 0 part - colour 0\n"))

    def test_is_in_the_help_with_its_default(self):
        self.assertRegex(run("--help")[1], r"  --patience=N +%s of --name \(default: 3\)\n" % SENTENCE)

    def test_has_its_range_checked(self):
        self.refuses("--patience=101 is out of range (use 1 to 100)", "--patience=101")
        self.refuses("--patience=-1 is out of range (use 1 to 100)", "--patience=-1")
        self.refuses("--patience=0 is out of range (use 1 to 100)", "--patience=0")

    def test_is_a_key_of_the_configuration_file(self):
        file = self.write("[try]\npatience=9\n")
        self.assertEqual(run("--config=" + file)[:2], (0, "patience 9 name - share 0 part - colour 0\n"))
        self.assertIn("patience 8 ", run("--config=" + file, "--patience=8")[1])
        self.refuses("patience: invalid value 'x' (use a number)", "--config=" + self.write("[try]\npatience=x\n"))

    def test_is_set_by_its_name_as_python_does(self):
        self.assertIn("patience 5 ", run("--set=patience=5")[1])
        self.refuses("invalid patience 101 of MusterSample", "--set=patience=101")

    def test_is_in_the_manual(self):
        page = made("make_page.py", self.write("@commands@\n@common@\n"))
        self.assertIn('.BI \\-\\-patience= "N"\n' + SENTENCE, page)

    def test_is_completed_by_each_shell(self):
        self.assertIn("--patience= ", made("make_completion.py", "bash"))
        self.assertIn("'--patience=-[%s of --name]:N: '" % SENTENCE, made("make_completion.py", "zsh"))
        self.assertIn("-l patience -x -d '%s of --name'" % SENTENCE, made("make_completion.py", "fish"))

    def completed(self, shell, value, text):
        """What completes an option --it, whose help has this value and text."""
        fake = self.write("""#!/bin/sh
case $1 in
--help) printf 'Commands:\\n  try  to try\\n\\n' ;;
*) printf 'Usage:\\n  muster try [OPTION…]\\n\\nTries.\\nOptions:\\n  --it=%s  %s\\n' ;;
esac
""" % (value, text))
        os.chmod(fake, 0o700)
        made = subprocess.run([sys.executable, "-B", "packaging/make_completion.py", fake, shell],
                              capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        return re.search({"zsh": r"--it=-(.*)'", "fish": r"-l it (.*)", "bash": r"'try --it'\) (.*) ;;|$"}[shell], made).group(1)

    def test_offers_words_only_where_they_are_the_value(self):
        self.assertEqual(self.completed("fish", "STEPS|auto", "how often"), "-x -a 'auto' -d 'how often'")
        self.assertEqual(self.completed("zsh", "NAME[:OUTPUT]:max|min", "a metric"), "[a metric]:NAME[\\:OUTPUT]\\:max|min: ")
        self.assertEqual(self.completed("fish", "NAME:max|min", "a metric"), "-x -d 'a metric'")
        self.assertIsNone(self.completed("bash", "NAME:max|min", "a metric"))

    def test_describes_itself_without_what_0_and_the_default_are(self):
        for shell, described in ("zsh", "[number to keep]:N: "), ("fish", "-x -d 'number to keep'"):
            self.assertEqual(self.completed(shell, "N", "number to keep (0: none; default: what that job used)"), described)

    def test_is_in_what_the_reference_and_other_languages_read(self):
        gir = self.write("")
        subprocess.run(["g-ir-scanner", "--quiet", "--header-only", "--namespace=Sample", "--nsversion=0",
                        "--identifier-prefix=Muster", "--symbol-prefix=muster", "--include=Gio-2.0", "--pkg=gio-2.0",
                        "--output=" + gir, "tests/cli/grown.h"], check=True, timeout=PATIENCE)
        with open(gir, encoding="utf-8") as file:
            self.assertRegex(file.read(), r'<field name="patience"[^>]*>\s*<doc[^>]*>the %s of @name; 0: 3</doc>\s*<type name="guint"' % SENTENCE)


class Flags(unittest.TestCase):
    """The fields of tests/base/sample.h that have flags."""

    def test_texts_and_structs_in_the_struct_have_them(self):
        self.assertEqual(run("--name=a", "--text=b")[:2], (0, "patience 0 name a share 0 part b colour 0\n"))

    def test_a_percentage_is_a_share(self):
        self.assertIn(" share 0.025 ", run("--share=2.5%")[1])
        self.assertIn(" share 0.5 ", run("--share=50")[1])
        for wrong in ("0", "-1", "60", "100", "x", "1x"):
            code, _, err = run("--share=" + wrong)
            self.assertEqual((code, "invalid --share '%s' (use a percentage such as 1 or 0.5)" % wrong in err), (3, True), err)

    def test_a_word_is_a_value_of_an_enumeration(self):
        self.assertIn(" colour 2\n", run("--colour=green")[1])
        code, _, err = run("--colour=r")
        self.assertEqual((code, "invalid --colour 'r' (use red, blue or green)" in err), (3, True), err)
        self.assertIn("'--colour=-[a value of an enumeration]:red|blue|green:(red blue green)'", made("make_completion.py", "zsh"))

    def test_two_structs_of_a_command_cannot_have_the_same(self):
        done = subprocess.run([SETTING, "twice"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertIn("muster twice has two options --name", done.stderr)

    def test_another_commands_flag_is_unknown(self):
        self.assertIn("Unknown option --elsewhere", run("--elsewhere=1")[2])


if __name__ == "__main__":
    unittest.main()
