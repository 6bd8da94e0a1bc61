#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""references.py and walks.py find what is wrong, in a small repository and in this one."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, "tests/docs")
import references
import walks

LIST = """# Behaviours

| number | behaviour | shown by |
|---|---|---|
| B002.1 | One. | `tests/a/a_test.c:A.one`, `tests/a/b_test.py:test_one` |
| B002.2 | Two. | `tests/a/a_test.c:A.two` |
| MON.9 | TensorFlow does. differs: muster needs none. |  |
"""
C_TEST = """// SPDX-License-Identifier: Apache-2.0
/* A file about B002.1. */

/* B002.1 */
MUSTER_TEST (A, one)
{
}

MUSTER_TEST (A, two)
{
  check (); /* B002.2 */
}

/* MON.9: of a helper, not of the test below */

static int x;

MUSTER_TEST (A, three)
{
}
"""
PYTHON_TEST = """class Tests:
    def test_one(self):
        \"\"\"B002.1\"\"\"

    def test_two(self):
        pass
"""


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("docs/behaviours.md", LIST)
        self.write("docs/decisions/0007-pushed.md", "# 7. Pushed\n")
        self.write("tests/a/a_test.c", C_TEST)
        self.write("tests/a/b_test.py", PYTHON_TEST)
        self.write("a/a.c", "/* B002.1 to B002.2, docs/decisions/0007, as a/a.c */\n")
        self.write("README.md", "# Head line\n\n[list](docs/behaviours.md) and [here](#head-line)\n")

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def edit(self, path, before, after):
        text = references.read(self.root, path)
        self.assertIn(before, text)
        self.write(path, text.replace(before, after))

    def expect(self, *problems):
        self.assertEqual(sorted(references.check(self.root)), sorted(problems))

    def test_nothing_is_wrong(self):
        self.expect()

    def test_a_cited_number_must_be_listed(self):
        self.edit("a/a.c", "B002.2", "B002.3")
        self.expect("a/a.c:1: B002.3 isn't in docs/behaviours.md")

    def test_a_cited_decision_must_be_recorded(self):
        self.edit("a/a.c", "0007", "0008")
        self.expect("a/a.c:1: no record docs/decisions/0008")

    def test_a_listed_test_must_exist(self):
        self.edit("tests/a/a_test.c", "(A, two)", "(A, renamed)")
        self.expect("docs/behaviours.md:6: B002.2: no test A.two in tests/a/a_test.c",
                    "docs/behaviours.md:6: B002.2: stale (run tests/docs/references.py --write)")

    def test_the_list_must_be_current_and_can_be_written(self):
        self.edit("tests/a/b_test.py", "        pass", '        """B002.2"""')
        self.expect("docs/behaviours.md:6: B002.2: stale (run tests/docs/references.py --write)")
        self.assertEqual(references.check(self.root, write=True), [])
        self.assertIn("| Two. | `tests/a/a_test.c:A.two`, `tests/a/b_test.py:test_two` |\n",
                      references.read(self.root, "docs/behaviours.md"))
        self.expect()

    def test_a_behaviour_without_a_test_says_why(self):
        self.edit("docs/behaviours.md", "differs: muster needs none.", "")
        self.expect('docs/behaviours.md:7: MON.9: no test cites it; say "differs: ..." or "no test: ..."')

    def test_a_behaviour_with_a_test_claims_no_lack_of_one(self):
        self.edit("docs/behaviours.md", "| Two. |", "| Two. no test: too slow |")
        self.expect("docs/behaviours.md:6: B002.2: has a test: `tests/a/a_test.c:A.two`")

    def test_a_number_is_listed_once(self):
        self.edit("docs/behaviours.md", "| MON.9 |", "| B002.2 | Again. |  |\n| MON.9 |")
        self.assertIn("docs/behaviours.md:7: B002.2 is there twice", references.check(self.root))

    def test_links_lead_somewhere(self):
        self.edit("README.md", "docs/behaviours.md", "docs/gone.md")
        self.edit("README.md", "#head-line", "#tail")
        self.expect("README.md:3: no docs/gone.md", "README.md:3: no heading #tail in README.md")

    def test_files_that_are_named_exist(self):
        self.edit("a/a.c", "as a/a.c", "as a/gone.c")
        self.edit("README.md", "# Head line", "# Head line\n\n`a/lost.c`, `lost.h`, `a.c`, `a/*.c`, `a/b*.c`")
        self.expect("a/a.c:1: no file a/gone.c", "README.md:3: no file a/lost.c", "README.md:3: no file lost.h",
                    "README.md:3: no file a/b*.c")

    def test_files_that_comments_of_scripts_name_exist(self):
        self.write("a/BUILD", "# as a/gone.c\nname = 'a/made.c'  # from a/a.c\n")
        self.expect("a/BUILD:1: no file a/gone.c")

    def test_code_in_a_document_runs_in_a_test(self):
        for name in ("README.md", "docs/porting/a.md"):
            self.write(name, "# Head line\n\n```sh\nls\n```\n\n```text\nA drawing.\n```\n")
        self.expect("README.md:3: code, but tests/docs/BUILD doesn't run this document",
                    "docs/porting/a.md:3: code, but tests/docs/BUILD doesn't run this document")
        self.write("tests/docs/BUILD", '"//:README.md"\n"//docs:porting/a.md"\n')
        self.expect()

    def test_code_that_is_not_run_names_the_test_that_does(self):
        self.write("tests/docs/BUILD", '"//:README.md"\n')
        self.write("README.md", "# Head line\n\n<!-- not run: it takes an hour -->\n```sh\nls\n```\n")
        self.expect("README.md:3: not run, without the test that runs it instead")
        self.edit("README.md", "an hour", "an hour; tests/a/b_test.py runs it")
        self.expect()

    def test_a_table_cell_is_short(self):
        cell = "| `a\\|b` | " + "word " * 24 + "[two words](docs/behaviours.md) |\n"
        self.write("README.md", "# Head line\n\n" + cell.replace("word word ", "word ", 1) + "\n" + cell)
        self.expect("README.md:5: a table cell of 26 words; 25 are the most")

    def test_functions_that_documents_name_exist(self):
        self.write("a/b.h", "void muster_a_make (void);\n")
        self.write("README.md", "# Head line\n\n`muster_a_make ()`, `muster_a_break ()`\n")
        self.expect("README.md:3: no function muster_a_break ()")

    def test_old_citations_are_found(self):
        self.edit("a/a.c", "as a/a.c", "decision 7")
        self.expect('a/a.c:1: "decision 7" names nothing; cite DIFF.n or docs/decisions/NNNN')


WALK = """# Walks

## A call

| hop | function | file | called by | what it does |
|---|---|---|---|---|
| 1 | `begin ()` | `a/a.c` | | begins |
| 2 | `ask ()` | `a/a.c` | 1 | asks |
| 3 | `answer ()` | `b/b.c` | 2, through `ANSWER` | answers |
| 4 | `each ()` | `a/a.c` | 1, through `visit` | is handed over by hop 1 |
| 5 | `hear ()` | `b/b.c` | 2, through `func` of `listen` | listens |
"""
CODE = {"a/a.c": """static void
each (int i)
{
}

/* ask (), which comes first: */
static void
ask (void)
{
  call (ANSWER);
  func ();
}

void
listen (Func f)
{
  func = f;
}

void
begin (void)
{
  ask ();
  visit (each);
}
""", "b/b.c": """static void
answer (void)
{
}

void
enter (void)
{
  add (ANSWER, answer);
  listen (hear);
}

static void
hear (void)
{
}
"""}


class Walks(unittest.TestCase):
    def problems(self, walk=WALK, **changes):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CODE, "docs/walks.md": walk}.items():
                for before, after in changes.get(path[0], ()):
                    self.assertIn(before, text)
                    text = text.replace(before, after)
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return [problem.split(": ", 1)[1].removeprefix("A call: ") for problem in walks.check(root)]

    def test_nothing_is_wrong(self):
        self.assertEqual(self.problems(), [])

    def test_a_function_that_moved_away_is_found(self):
        self.assertEqual(self.problems(b=[("answer (void)", "reply (void)")]), ["no function answer () in b/b.c"])
        self.assertEqual(self.problems(walk=WALK.replace("| `b/b.c`", "| `b/none.c`", 1)), ["no function answer () in b/none.c"])

    def test_a_hop_that_is_called_no_longer_is_found(self):
        self.assertEqual(self.problems(a=[("  ask ();", "  /* ask (); */")]), ["begin () doesn't call ask ()"])
        self.assertEqual(self.problems(a=[("call (ANSWER)", "call (OTHER)")]), ["ask () doesn't use ANSWER"])
        self.assertEqual(self.problems(b=[("ANSWER, answer", "ANSWER, reply")]), ["nothing hands answer () over as ANSWER"])
        self.assertEqual(self.problems(a=[("visit (each)", "visit (NULL)")]), ["nothing hands each () over as visit"])
        self.assertEqual(self.problems(a=[("func = f", "other = f")]), ["no listen () beside a/a.c uses func"])
        self.assertEqual(self.problems(b=[("listen (hear)", "listen (NULL)")]), ["nothing hands hear () to listen ()"])

    def test_a_row_that_is_no_hop_is_found(self):
        self.assertEqual(self.problems(walk=WALK.replace("| 2, through `func` of `listen`", "| one")), ["a hop is | NUMBER | `function ()` | `file` | CALLER | sentence |"])
        self.assertEqual(self.problems(walk=WALK.replace("| 1 | asks", "| 3 | asks")), ["hop 3 isn't before it"])
        self.assertEqual(self.problems(walk=WALK.replace("| 1 | asks", "| | asks")), ["nobody calls ask ()"])


class Repository(unittest.TestCase):
    # README.md is a link from a test's files into the work tree.
    root = os.path.dirname(os.path.realpath("README.md"))

    def test_all_references_resolve(self):
        self.assertEqual("\n".join(references.check(self.root)), "")

    def test_every_hop_of_the_walks_is_there(self):
        self.assertEqual("\n".join(walks.check(self.root)), "")


if __name__ == "__main__":
    unittest.main()
