// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph/meta_graph_io.h"

#include "base/error.h"
#include "graph/graph_builder.h"
#include "graph/graph_difference_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* That names and attributes come out as TensorFlow has them is tests/tensorflow/saver_test.py's to
 * show. */

static const char *const fixtures[] = {
    "tests/fixtures/digits.meta",
    "tests/fixtures/linreg.meta",
};

static MusterMetaGraph *
load (const char *path)
{
  g_autoptr (GError) error = NULL;
  MusterMetaGraph *meta_graph = muster_import_meta_graph (path, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return meta_graph;
}

/* "x", "y" and their sum; "in/double" takes the sum twice. No op list. */
static MusterMetaGraph *
small (void)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_node (b, "AddV2", "in/double");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_node (b, "NoOp", "in/after");
  muster_graph_builder_input (b, "^x");
  muster_graph_builder_input (b, "^in/double");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, NULL);
  return muster_meta_graph_new_for_graph (graph);
}

/* SAV.72 */
MUSTER_TEST (MetaGraphIo, moves_variables_collections_and_the_saver_below_a_scope)
{
  const MusterImport how = {.import_scope = "there/"};
  g_autoptr (MusterMetaGraph) plain = load (fixtures[0]);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) there = muster_meta_graph_import (plain, &how, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (there != NULL);
  gsize n, n_plain;
  const MusterVariableInfo *moved = muster_meta_graph_variables (there, &n);
  const MusterVariableInfo *variables = muster_meta_graph_variables (plain, &n_plain);
  MUSTER_ASSERT_EQ (n, n_plain);
  for (gsize i = 0; i < n; i++) {
    g_autofree char *name = g_strconcat ("there/", variables[i].name, NULL);
    MUSTER_EXPECT_STREQ (moved[i].name, name);
    MUSTER_EXPECT_EQ (moved[i].dtype, variables[i].dtype);
  }
  g_autofree char *init = g_strconcat ("there/", muster_meta_graph_op (plain, "init_op"), NULL);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (there, "init_op"), init);
  g_autofree char *save =
      g_strconcat ("there/", muster_meta_graph_saver (plain)->save_tensor, NULL);
  MUSTER_EXPECT_STREQ (muster_meta_graph_saver (there)->save_tensor, save);
}

/* SAV.73 */
MUSTER_TEST (MetaGraphIo, gives_the_same_graph_back_that_went_below_a_scope)
{
  const MusterImport in = {.import_scope = "a/b"};
  const MusterExport out = {.export_scope = "a/b"};
  for (gsize i = 0; i < G_N_ELEMENTS (fixtures); i++) {
    g_autoptr (MusterMetaGraph) plain = load (fixtures[i]);
    g_autoptr (MusterMetaGraph) there = muster_meta_graph_import (plain, &in, NULL);
    g_autoptr (MusterMetaGraph) again = muster_meta_graph_export (there, &out, NULL);
    MUSTER_ASSERT_TRUE (again != NULL);
    g_autofree char *difference =
        muster_graph_difference (muster_meta_graph_graph (again), muster_meta_graph_graph (plain));
    MUSTER_EXPECT_NULL (difference);
    MUSTER_EXPECT_STREQ (muster_meta_graph_saver (again)->restore_op,
                         muster_meta_graph_saver (plain)->restore_op);
  }
}

MUSTER_TEST (MetaGraphIo, changes_nothing_where_nothing_is_asked)
{
  g_autoptr (MusterMetaGraph) plain = load (fixtures[0]);
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "same.meta", NULL);
  g_autofree char *before = NULL;
  g_autofree char *after = NULL;
  gsize size_before, size_after;

  MUSTER_EXPECT_TRUE (muster_export_meta_graph (plain, NULL, path, FALSE, NULL));

  g_file_get_contents (fixtures[0], &before, &size_before, NULL);
  g_file_get_contents (path, &after, &size_after, NULL);
  MUSTER_ASSERT_EQ (size_before, size_after);
  MUSTER_EXPECT_EQ (memcmp (before, after, size_after), 0);
}

/* SAV.74 */
MUSTER_TEST (MetaGraphIo, clears_devices)
{
  const MusterExport how = {.clear_devices = TRUE};
  g_autoptr (MusterMetaGraph) plain = load (fixtures[0]);
  g_autoptr (MusterMetaGraph) cleared = muster_meta_graph_export (plain, &how, NULL);
  MusterGraph *graph = muster_meta_graph_graph (cleared);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    MUSTER_EXPECT_STREQ (muster_graph_node (graph, i)->kind->device, "");
}

/* SAV.74: a subtree; what nobody outside will end isn't waited for. */
MUSTER_TEST (MetaGraphIo, says_of_which_value_from_outside_it_does_not_know_the_type)
{
  const MusterExport how = {.export_scope = "in"};
  g_autoptr (MusterMetaGraph) model = small ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) exported = muster_meta_graph_export (model, &how, &error);
  MUSTER_EXPECT_NULL (exported);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "'double'"));
}

MUSTER_TEST (MetaGraphIo, refuses_a_scope_that_is_no_name)
{
  const char *const scopes[] = {"a b", "_a", "/a", "a:0"};
  g_autoptr (MusterMetaGraph) model = small ();
  for (gsize i = 0; i < G_N_ELEMENTS (scopes); i++) {
    const MusterImport how = {.import_scope = scopes[i]};
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) imported = muster_meta_graph_import (model, &how, &error);
    MUSTER_EXPECT_NULL (imported);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

/* SAV.70 */
MUSTER_TEST (MetaGraphIo, says_what_is_wrong_with_a_file)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "some.meta", NULL);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_NULL (muster_import_meta_graph (path, NULL, &error));
  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);

  g_clear_error (&error);
  g_file_set_contents (path, "# text\nmeta_info_def {\n  tags: 1\n}\n", -1, NULL);
  MUSTER_EXPECT_NULL (muster_import_meta_graph (path, NULL, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "some.meta': Line 3: a string is missing");
}

/* What people have called a graph, with the name that each gets. */
MUSTER_TEST (MetaGraphIo, names_what_is_no_meta_graph)
{
  static const struct {
    const char *name;
    const char *contents;
    gsize size;
    const char *what;
  } cases[] = {
#define IS(name, text, what) {name, text, sizeof (text) - 1, what}
      IS ("a.meta", "", "it is empty"),
      IS ("a.meta", "neither\n", "a text of another kind"),
      IS ("a.meta", "version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
          "a Git LFS pointer, not a MetaGraphDef; fetch the file with `git lfs pull`"),
      IS ("a.meta", "<!DOCTYPE html>\n<html>", "an HTML page"),
      IS ("a.meta", "<?xml version=\"1.0\"?><Error/>", "an XML page"),
      IS ("a.meta", "\x1f\x8b\x08\0\0", "compressed by gzip"),
      IS ("a.meta", "PK\x03\x04\x14\0", "a ZIP archive"),
      IS ("a.h5", "\x89HDF\r\n\x1a\n", "a Keras model or its weights in HDF5"),
      IS ("a.tflite", "\x1c\0\0\0TFL3\x14\0", "a TensorFlow Lite model"),
      IS ("a.json", "{\"class_name\": 1}", "JSON"),
      IS ("checkpoint", "model_checkpoint_path: \"m-1\"\n", "a checkpoint state file"),
      IS ("m-1.index", "\0\0\x57\xfb\x80\x8b\x24\x75\x47\xdb", "the index of a checkpoint"),
      IS ("m-1", "\0\0\x57\xfb\x80\x8b\x24\x75\x47\xdb", "a V1 checkpoint"),
      IS ("m-1.data-00000-of-00001", "\0\0\x80\x3f", "a data file of a checkpoint"),
      IS ("events.out.tfevents.1",
          "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\xc0\0\0\0\0\0\x1a\rbrain.Event:2",
          "an event file"),
      IS ("graph.pbtxt", "node {\n  name: \"a\"\n  op: \"NoOp\"\n}\n", "a GraphDef"),
      IS ("frozen.pb",
          "\x0a\x09\x0a\x01"
          "a\x12\x04NoOp",
          "a GraphDef"),
#undef IS
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = g_build_filename (muster_test_tmpdir (), cases[i].name, NULL);
    g_autoptr (GError) error = NULL;
    g_file_set_contents (path, cases[i].contents, (gssize)cases[i].size, NULL);
    MUSTER_EXPECT_NULL (muster_meta_graph_load (path, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, cases[i].what);
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, path);
  }
}

/* A file's first bytes may lie: each ends in a graph or an error, whatever follows them. */
MUSTER_TEST (MetaGraphIo, cuts_no_form_short_without_a_word)
{
  static const char *const starts[] = {
      "\x08\x01\x12\x05\x0a",        "node", "meta_graphs {", "graph_def", "#",
      "saved_model_schema_version:", "TFL3"};
  for (gsize i = 0; i < G_N_ELEMENTS (starts); i++) {
    g_autofree char *path = g_build_filename (muster_test_tmpdir (), "cut.pb", NULL);
    g_autoptr (GError) error = NULL;
    g_file_set_contents (path, starts[i], -1, NULL);
    MUSTER_EXPECT_NULL (muster_meta_graph_load (path, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "cut.pb");
  }
}

/* A SavedModel of two meta graphs, whose nodes are named after their tags. */
static char *
write_saved_model (const char *file, const char *text)
{
  char *directory = g_build_filename (muster_test_tmpdir (), "saved", NULL);
  g_autofree char *path = g_build_filename (directory, file, NULL);
  g_mkdir_with_parents (directory, 0755);
  g_file_set_contents (path, text, -1, NULL);
  return directory;
}

static void
expect_node (const char *directory, const char *tags, const char *node)
{
  g_autofree char *place = g_strconcat (directory, tags, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) read = muster_meta_graph_load (place, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_graph_has_node (muster_meta_graph_graph (read), node));
}

MUSTER_TEST (MetaGraphIo, reads_the_meta_graph_of_a_saved_model_by_its_tags)
{
  g_autofree char *directory = write_saved_model (
      "saved_model.pbtxt",
      "saved_model_schema_version: 1\n"
      "meta_graphs { meta_info_def { tags: 'serve' tags: 'gpu' } graph_def { node { name: 'g' op: "
      "'NoOp' } } }\n"
      "meta_graphs { meta_info_def { tags: 'serve' } graph_def { node { name: 's' op: 'NoOp' } } "
      "}");
  g_autofree char *unknown = g_strconcat (directory, ":train", NULL);
  g_autoptr (GError) several = NULL, none = NULL;

  expect_node (directory, ":serve", "s");
  expect_node (directory, ":gpu,serve", "g");
  expect_node (directory, "/saved_model.pbtxt:serve,gpu", "g");
  MUSTER_EXPECT_NULL (muster_meta_graph_load (directory, &several));
  MUSTER_EXPECT_SAYS (several, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "has 2 meta graphs; append the tags of one of them to the directory's name, "
                      "as in DIR:gpu,serve: 'gpu,serve', 'serve'");
  MUSTER_EXPECT_NULL (muster_meta_graph_load (unknown, &none));
  MUSTER_EXPECT_SAYS (none, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "no meta graph with the tags 'train'; it has 'gpu,serve', 'serve'");
}

MUSTER_TEST (MetaGraphIo, proposes_the_meta_graph_in_a_directory_of_checkpoints)
{
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "run", NULL);
  g_autofree char *meta = g_build_filename (directory, "model.ckpt-40.meta", NULL);
  g_autoptr (GError) error = NULL;
  g_mkdir_with_parents (directory, 0755);
  g_file_set_contents (meta, "", -1, NULL);

  MUSTER_EXPECT_NULL (muster_meta_graph_load (directory, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "run/model.ckpt-40.meta'");
}

static char *
write_text (MusterMetaGraph *meta_graph)
{
  char *path = g_build_filename (muster_test_tmpdir (), "text.meta", NULL);
  g_autoptr (GError) error = NULL;
  muster_export_meta_graph (meta_graph, NULL, path, TRUE, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return path;
}

/* SAV.70 */
MUSTER_TEST (MetaGraphIo, reads_the_text_that_it_writes)
{
  for (gsize i = 0; i < G_N_ELEMENTS (fixtures); i++) {
    g_autoptr (MusterMetaGraph) plain = load (fixtures[i]);
    g_autofree char *path = write_text (plain);
    g_autoptr (MusterMetaGraph) again = load (path);
    MUSTER_ASSERT_TRUE (again != NULL);
    g_autofree char *difference =
        muster_graph_difference (muster_meta_graph_graph (again), muster_meta_graph_graph (plain));
    MUSTER_EXPECT_NULL (difference);
    MUSTER_EXPECT_STREQ (muster_meta_graph_saver (again)->restore_op,
                         muster_meta_graph_saver (plain)->restore_op);
  }
}

/* A whole meta graph from some text, and what it says of its saver. */
static MusterMetaGraph *
parse (const char *text, GError **error)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "given.meta", NULL);
  g_file_set_contents (path, text, -1, NULL);
  return muster_import_meta_graph (path, NULL, error);
}

MUSTER_TEST (MetaGraphIo, reads_text_in_all_its_forms)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) read =
      parse ("# by hand\n"
             "saver_def: < filename_tensor_name: 'a' \"b\\x63\\144\\n\", max_to_keep: 0x10;\n"
             "  keep_checkpoint_every_n_hours: 2.5f sharded: true version: V2 >\n"
             "graph_def { node { name: \"n\" op: 'NoOp' input: [] } }\n"
             "object_graph_def { nodes { children { node_id: 1 } } } of_a_later_version: [1, 2]\n"
             "collection_def { key: 'k' value { any_list { value { [type.test/T] { x: 1 } } } } }",
             &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (read != NULL);
  const MusterSaverInfo *saver = muster_meta_graph_saver (read);
  MUSTER_ASSERT_TRUE (saver != NULL);
  MUSTER_EXPECT_STREQ (saver->filename_tensor, "abcd\n");
  MUSTER_EXPECT_EQ (saver->max_to_keep, 16);
  MUSTER_EXPECT_EQ (saver->keep_every_n_hours, 2.5F);
  MUSTER_EXPECT_TRUE (saver->sharded);
  MUSTER_EXPECT_EQ (saver->version, 2);
}

MUSTER_TEST (MetaGraphIo, refuses_text_that_is_wrong)
{
  const char *const texts[] = {
      "saver_def {",
      "saver_def }",
      "saver_def { max_to_keep: 99999999999 }",
      "saver_def { max_to_keep: -99999999999 }",
      "saver_def { max_to_keep: }",
      "saver_def { max_to_keep 1 }",
      "saver_def { max_to_keep: [1, 2] }",
      "saver_def { filename_tensor_name: \"x }",
      "saver_def { filename_tensor_name: \"\\q\" }",
      "saver_def { filename_tensor_name: \"\\400\" }",
      "saver_def { filename_tensor_name: \"\\377\" }",
      "saver_def { filename_tensor_name: \"\\u12\" }",
      "saver_def { filename_tensor_name: \"\\",
      "saver_def { sharded: maybe }",
      "saver_def { version: V9 }",
      "saver_def { keep_checkpoint_every_n_hours: x }",
      "saver_def: 5",
      "graph_def { node { name: 'a' op: 'b' input: 'nowhere' } }",
  };
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) read = parse (texts[i], &error);
    MUSTER_EXPECT_NULL (read);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    if (read != NULL)
      MUSTER_EXPECT_STREQ (texts[i], "refused");
  }
}

MUSTER_TEST (MetaGraphIo, refuses_text_that_nests_without_end)
{
  g_autoptr (GString) text = g_string_new ("graph_def { node { attr { value ");
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < 100000; i++)
    g_string_append (text, "{ list { func { attr { value ");

  g_autoptr (MusterMetaGraph) read = parse (text->str, &error);

  MUSTER_EXPECT_NULL (read);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "too deep"));
}

MUSTER_TEST (MetaGraphIo, survives_damaged_text)
{
  g_autoptr (MusterMetaGraph) plain = load (fixtures[1]);
  g_autofree char *path = write_text (plain);
  g_autofree char *contents = NULL;
  gsize size;
  g_file_get_contents (path, &contents, &size, NULL);
  g_autoptr (GRand) random = g_rand_new_with_seed (6);

  for (guint i = 0; i < 100; i++) {
    g_autofree char *damaged = g_memdup2 (contents, size + 1);
    for (gint32 flips = g_rand_int_range (random, 1, 4); flips > 0; flips--)
      damaged[g_rand_int_range (random, 0, (gint32)size)] = (char)g_rand_int_range (random, 1, 128);
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) read = parse (damaged, &error);
    MUSTER_EXPECT_TRUE ((read == NULL) == (error != NULL));
  }
}

/* Whatever the bytes: a meta graph or an error. */
MUSTER_TEST (MetaGraphIo, survives_damaged_meta_graphs)
{
  const MusterExport out = {
      .clear_devices = TRUE, .clear_extraneous_savers = TRUE, .strip_default_attrs = TRUE};
  const MusterExport part = {.export_scope = "hidden"};
  const MusterImport in = {.import_scope = "s"};
  g_autofree char *contents = NULL;
  gsize size;
  g_file_get_contents (fixtures[0], &contents, &size, NULL);
  g_autoptr (GRand) random = g_rand_new_with_seed (5);
  guint n_read = 0;

  for (guint i = 0; i < 400; i++) {
    g_autofree char *damaged = g_memdup2 (contents, size);
    for (gint32 flips = g_rand_int_range (random, 1, 4); flips > 0; flips--)
      damaged[g_rand_int_range (random, 0, (gint32)size)] = (char)g_rand_int (random);
    g_autoptr (GBytes) bytes = g_bytes_new (damaged, size);
    g_autoptr (MusterMetaGraph) read = muster_meta_graph_new (bytes, NULL);
    if (read == NULL)
      continue;
    n_read++;
    g_autoptr (MusterMetaGraph) exported = muster_meta_graph_export (read, &out, NULL);
    g_autoptr (MusterMetaGraph) partial = muster_meta_graph_export (read, &part, NULL);
    g_autoptr (MusterMetaGraph) imported = muster_meta_graph_import (read, &in, NULL);
    g_autoptr (MusterMetaGraph) saverless =
        muster_meta_graph_with_saver (read, muster_meta_graph_graph (read), NULL, FALSE, NULL);
  }
  MUSTER_EXPECT_TRUE (n_read > 0);
}

/* MetaGraphDef.object_graph_def, empty. */
static const char objects[] = {7 << 3 | 2, 0};

/* What has no name here isn't dropped in silence. */
MUSTER_TEST (MetaGraphIo, has_no_text_for_objects)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "objects.meta", NULL);
  g_autofree char *bytes = NULL;
  g_autoptr (GError) error = NULL;
  gsize size;
  MUSTER_ASSERT_TRUE (g_file_get_contents (fixtures[0], &bytes, &size, NULL));
  g_autoptr (GByteArray) with = g_byte_array_new ();
  g_byte_array_append (with, (const guint8 *)bytes, (guint)size);
  g_byte_array_append (with, (const guint8 *)objects, sizeof objects);
  g_file_set_contents (path, (const char *)with->data, with->len, NULL);
  g_autoptr (MusterMetaGraph) model = load (path);
  MUSTER_ASSERT_TRUE (model != NULL);

  MUSTER_EXPECT_FALSE (muster_export_meta_graph (model, NULL, path, TRUE, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "unknown field 7 in MetaGraphDef"));
}

MUSTER_TEST (MetaGraphEdit, replaces_a_collection_by_one_op_of_the_graph)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) plain = small ();
  g_autoptr (MusterMetaGraph) first =
      muster_meta_graph_with_op (plain, "train_op", "in/after", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (first != NULL);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (first, "train_op"), "in/after");
  MUSTER_EXPECT_NULL (muster_meta_graph_op (plain, "train_op"));

  g_autoptr (MusterMetaGraph) second =
      muster_meta_graph_with_op (first, "train_op", "in/double:0", &error);
  MUSTER_ASSERT_TRUE (second != NULL);
  const char *const *ops = muster_meta_graph_collection (second, "train_op");
  MUSTER_EXPECT_STREQ (ops[0], "in/double:0");
  MUSTER_EXPECT_NULL (ops[1]);

  g_autoptr (MusterMetaGraph) none = muster_meta_graph_with_op (second, "train_op", NULL, &error);
  MUSTER_ASSERT_TRUE (none != NULL);
  MUSTER_EXPECT_NULL (muster_meta_graph_op (none, "train_op"));
}

MUSTER_TEST (MetaGraphEdit, refuses_an_op_that_the_graph_lacks)
{
  static const char *const wrong[] = {"nothing", "^x", ""};
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) plain = small ();
    MUSTER_EXPECT_NULL (muster_meta_graph_with_op (plain, "train_op", wrong[i], &error));
    MUSTER_EXPECT_TRUE (g_error_matches (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT));
    MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "'train_op'") != NULL);
  }
}
