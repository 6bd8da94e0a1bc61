// SPDX-License-Identifier: Apache-2.0
/* Kernels that are given sizes and attributes which no program sends: they refuse them, or make
 * nothing of them. */
#include "engine/run/registry.h"
#include "tests/engine/fixture.h"

/* The largest square whose elements can still be counted. */
#define MANY G_GINT64_CONSTANT (3037000499)

/* No matrix at all, of so many rows and columns. */
static MusterTensor *
no_matrix (void)
{
  return muster_tensor_new_from_data (MUSTER_FLOAT, 3, (gint64[]){0, MANY, MANY}, "", 0, NULL);
}

/* What op's first output is, of no matrix for each of its inputs. */
static MusterTensor *
run_on_nothing (const char *op, int n_inputs, GError **error)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) x = no_matrix ();
  muster_graph_builder_node (b, "Placeholder", "x");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, op, "y");
  for (int i = 0; i < n_inputs; i++)
    muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  return run_one (session, "x:0", x, "y:0", error);
}

MUSTER_TEST (LinearAlgebra, of_no_matrices_is_nothing_however_large_they_would_be)
{
  static const struct {
    const char *op;
    int n_inputs;
  } ops[] = {
      {"MatrixInverse", 1},     {"MatrixSolve", 2}, {"MatrixTriangularSolve", 2}, {"Cholesky", 1},
      {"MatrixDeterminant", 1}, {"Qr", 1},          {"LogMatrixDeterminant", 1}};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) y = run_on_nothing (ops[i].op, ops[i].n_inputs, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (y != NULL && muster_tensor_n_elements (y) == 0);
  }
}

/* A list is where a message has its union: what is no list mustn't be taken for one. */
MUSTER_TEST (FixedSampler, takes_no_number_for_a_list_of_them)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) classes =
      muster_tensor_new_from_data (MUSTER_INT64, 2, (gint64[]){0, 1}, "", 0, NULL);
  muster_graph_builder_constant (b, "classes", classes);
  muster_graph_builder_node (b, "FixedUnigramCandidateSampler", "sampler");
  muster_graph_builder_input (b, "classes");
  muster_graph_builder_attr_int (b, "num_true", 1);
  muster_graph_builder_attr_int (b, "num_sampled", 1);
  muster_graph_builder_attr_int (b, "range_max", 2);
  muster_graph_builder_attr_bool (b, "unique", FALSE);
  muster_graph_builder_attr_int (b, "unigrams", 12345);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (MusterTensor) drawn = run_one (session, NULL, NULL, "sampler:0", &error);
  MUSTER_EXPECT_NULL (drawn);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "unigrams");
}

MUSTER_TEST (ImageSummary, refuses_an_image_that_is_too_large_before_it_allocates)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) tag = muster_tensor_new_string ("image");
  g_autoptr (MusterTensor) none = muster_tensor_new_from_data (
      MUSTER_UINT8, 4, (gint64[]){0, 1 << 14, (1 << 14) + 1, 1}, "", 0, NULL);
  muster_graph_builder_constant (b, "tag", tag);
  muster_graph_builder_constant (b, "images", none);
  muster_graph_builder_node (b, "ImageSummary", "summary");
  muster_graph_builder_input (b, "tag");
  muster_graph_builder_input (b, "images");
  muster_graph_builder_attr_type (b, "T", MUSTER_UINT8);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (MusterTensor) summary = run_one (session, NULL, NULL, "summary:0", &error);
  MUSTER_EXPECT_NULL (summary);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Tensor too large for summary");
}

/* Every op, as nodes whose numbers are what no program sends: how many inputs and outputs there
 * are, how long the lists are, and all other attributes. */

/* An op, and what its node is given. */
typedef struct {
  const MusterOpEntry *entry;
  MusterDType dtype; /* of type attributes */
  const char *many;  /* the attribute that is given n; NULL: all that aren't types */
  gint64 n;
  gboolean are_lists; /* those are empty lists instead */
  int n_dims;         /* of inputs: of one element */
} Try;

#define COUNTED "[:](\\w+)\\*"
#define LISTED  "[:]\\*(\\w+)"
#define TYPED   "[:](?:\\w+\\*)?&?([A-Z]\\w*|\\w+_type|dtype)\\b(?!\\*)"

/* The names in an op's signature that the pattern finds. */
static GPtrArray *
names_of (const MusterOp *op, const char *pattern)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GRegex) regex = g_regex_new (pattern, 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  for (g_regex_match (regex, op->signature, 0, &match); g_match_info_matches (match);
       g_match_info_next (match, NULL))
    g_ptr_array_add (names, g_match_info_fetch (match, 1));
  return names;
}

static gboolean
has (GPtrArray *names, const char *name)
{
  return g_ptr_array_find_with_equal_func (names, name, g_str_equal, NULL);
}

/* Those of the op's attributes that the signature doesn't have. */
static void
add_others (MusterGraphBuilder *b, const Try *t, GPtrArray *done)
{
  g_auto (GStrv) words = g_strsplit (t->entry->op->attributes, " ", -1);
  for (char **word = words; *word != NULL; word++) {
    const gboolean is_type = strchr (*word, ':') != NULL;
    (*word)[strcspn (*word, ":=>")] = '\0';
    if (**word == '\0' || has (done, *word))
      continue;
    if (is_type)
      muster_graph_builder_attr_type (b, *word, t->dtype);
    else if (t->are_lists)
      muster_graph_builder_attr_types (b, *word, NULL, 0);
    else if (t->many == NULL)
      muster_graph_builder_attr_int (b, *word, t->n);
  }
}

static void
add_attributes (MusterGraphBuilder *b, const Try *t)
{
  static const char *const patterns[] = {COUNTED, LISTED, TYPED};
  g_autoptr (GPtrArray) done = g_ptr_array_new_with_free_func (g_free);
  for (gsize p = 0; p < G_N_ELEMENTS (patterns); p++) {
    g_autoptr (GPtrArray) names = names_of (t->entry->op, patterns[p]);
    for (guint i = 0; i < names->len; i++) {
      const char *name = g_ptr_array_index (names, i);
      const gint64 n = g_strcmp0 (t->many, name) == 0 ? t->n : 1;
      if (has (done, name))
        continue;
      if (p == 0)
        muster_graph_builder_attr_int (b, name, n);
      else if (p == 1)
        muster_graph_builder_attr_types (b, name, &t->dtype, n == 1 ? 1 : 0);
      else
        muster_graph_builder_attr_type (b, name, t->dtype);
      g_ptr_array_add (done, g_strdup (name));
    }
  }
  add_others (b, t, done);
}

/* The inputs that the node must have; none if none would do. */
static void
find_inputs (const Try *t, GByteArray *dtypes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_node (b, t->entry->op->name, "node");
  add_attributes (b, t);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  const MusterNode *node = muster_graph_find_node (graph, "node");
  muster_signature_inputs (t->entry->signature, node, dtypes);
}

static void
add_input (MusterGraphBuilder *b, const char *name, MusterDType dtype, gboolean is_ref, int n_dims)
{
  static const gint64 ones[] = {1, 1};
  static const MusterString text = {"text", 4};
  static const char zero[16];
  if (is_ref || dtype == MUSTER_RESOURCE || dtype == MUSTER_VARIANT) {
    muster_graph_builder_node (b, is_ref ? "VariableV2" : "VarHandleOp", name);
    muster_graph_builder_attr_type (b, "dtype", is_ref ? dtype : MUSTER_FLOAT);
    muster_graph_builder_attr_shape (b, "shape", n_dims, ones);
    return;
  }
  g_autoptr (MusterTensor) tensor =
      dtype == MUSTER_STRING ? muster_tensor_new_strings (n_dims, ones, &text)
                             : muster_tensor_new_from_data (dtype, n_dims, ones, zero,
                                                            muster_dtype_size (dtype), NULL);
  muster_graph_builder_constant (b, name, tensor);
}

/* TRUE if the node was computed. The deadline is for ops that wait. */
static gboolean
run_try (MusterMaster *master, const Try *t)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) dtypes = g_byte_array_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  find_inputs (t, dtypes);
  for (guint i = 0; i < dtypes->len; i++) {
    g_ptr_array_add (names, g_strdup_printf ("x%u", i));
    add_input (b, g_ptr_array_index (names, i), dtypes->data[i] % MUSTER_REF,
               dtypes->data[i] > MUSTER_REF, t->n_dims);
  }
  muster_graph_builder_node (b, t->entry->op->name, "node");
  for (guint i = 0; i < names->len; i++)
    muster_graph_builder_input (b, g_ptr_array_index (names, i));
  add_attributes (b, t);
  g_autoptr (MusterSession) session = open_session (master, b);
  return muster_session_run_op (session, "node", test_deadline_in (MUSTER_SECOND / 10), NULL,
                                &error);
}

/* How often the op is computed, of several dtypes and shapes of its inputs. */
static guint
try_op (MusterMaster *master, Try t)
{
  static const MusterDType dtypes[] = {MUSTER_FLOAT, MUSTER_INT64, MUSTER_INT32, MUSTER_STRING};
  guint n_computed = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (dtypes); i++)
    for (t.n_dims = 0; t.n_dims < 3; t.n_dims++) {
      t.dtype = dtypes[i];
      n_computed += run_try (master, &t) ? 1 : 0;
    }
  return n_computed;
}

/* Each op's own attribute of that many is what says whether there may be none. */
static gboolean
may_be_none (const MusterOp *op, const char *name)
{
  g_autofree char *word = g_strdup_printf ("%s>=0", name);
  g_auto (GStrv) words = g_strsplit (op->attributes, " ", -1);
  return g_strv_contains ((const char *const *)words, word);
}

static guint
try_numbers (MusterMaster *master, const MusterOpEntry *entry, const char *pattern)
{
  static const gint64 counts[] = {0, -1, G_GINT64_CONSTANT (1) << 31, G_MININT64, G_MAXINT64};
  const gsize n_counts = g_str_equal (pattern, LISTED) ? 1 : G_N_ELEMENTS (counts);
  g_autoptr (GPtrArray) names = names_of (entry->op, pattern);
  for (guint i = 0; i < names->len; i++)
    for (gsize c = 0; c < n_counts; c++) {
      const Try t = {.entry = entry, .many = g_ptr_array_index (names, i), .n = counts[c]};
      const guint n_computed = try_op (master, t);
      if (n_computed > 0 && (t.n != 0 || !may_be_none (entry->op, t.many)))
        MUSTER_FAIL ("%s with %s=%" G_GINT64_FORMAT " is computed", entry->op->name, t.many, t.n);
    }
  return names->len;
}

static MusterMaster *
small_master (void)
{
  return muster_local_master_new_with (NULL, 16 << 20);
}

MUSTER_TEST (HostileCounts, are_refused_by_every_op)
{
  g_autoptr (MusterMaster) master = small_master ();
  g_autoptr (GPtrArray) ops = muster_op_names ();
  guint n_counted = 0, n_listed = 0;
  for (guint i = 0; i < ops->len; i++) {
    const MusterOpEntry *entry = muster_op_find_entry (g_ptr_array_index (ops, i));
    n_counted += try_numbers (master, entry, COUNTED);
    n_listed += try_numbers (master, entry, LISTED);
  }
  MUSTER_EXPECT_TRUE (n_counted > 30 && n_listed > 20);
}

MUSTER_TEST (HostileCounts, as_any_other_attribute_end_no_process)
{
  static const gint64 values[] = {0, -1, G_GINT64_CONSTANT (1) << 31, G_MININT64, G_MAXINT64};
  g_autoptr (MusterMaster) master = small_master ();
  g_autoptr (GPtrArray) ops = muster_op_names ();
  guint n_computed = 0;
  for (guint i = 0; i < ops->len; i++) {
    Try t = {.entry = muster_op_find_entry (g_ptr_array_index (ops, i)), .are_lists = TRUE};
    n_computed += try_op (master, t);
    t.are_lists = FALSE;
    for (gsize v = 0; v < G_N_ELEMENTS (values); v++) {
      t.n = values[v];
      n_computed += try_op (master, t);
    }
  }
  MUSTER_EXPECT_TRUE (n_computed > 1000);
}
