// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/seen_model.h"

#include "checkpoint/format/bundle_reader.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "train/position/batches.h"
#include "train/position/position.h"

typedef struct {
  MusterGraphBuilder *builder;
  const MusterSeenModel *how;
  GPtrArray *initialisers;
} Build;

static void
node (Build *self, const char *op, const char *name, const char *const *inputs)
{
  muster_graph_builder_node (self->builder, op, name);
  for (; *inputs; inputs++)
    muster_graph_builder_input (self->builder, *inputs);
}
#define INPUTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static gboolean
has_resources (const Build *self)
{
  return self->how->resources || self->how->on_server;
}

static void
resource_variable (Build *self, const char *name, MusterTensor *initial)
{
  g_autofree char *value = g_strconcat (name, "/initial_value", NULL);
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  g_autofree char *read = g_strconcat (name, "/Read/ReadVariableOp", NULL);

  muster_graph_builder_node (self->builder, "VarHandleOp", name);
  if (self->how->on_server)
    muster_graph_builder_device (self->builder, "/job:ps/task:0");
  muster_graph_builder_attr_type (self->builder, "dtype", muster_tensor_dtype (initial));
  muster_graph_builder_attr_shape (self->builder, "shape", muster_tensor_n_dims (initial),
                                   muster_tensor_dims (initial));
  muster_graph_builder_attr_string (self->builder, "shared_name", name);
  muster_graph_builder_constant (self->builder, value, initial);
  node (self, "AssignVariableOp", assign, INPUTS (name, value));
  muster_graph_builder_attr_type (self->builder, "dtype", muster_tensor_dtype (initial));
  node (self, "ReadVariableOp", read, INPUTS (name));
  muster_graph_builder_attr_type (self->builder, "dtype", muster_tensor_dtype (initial));
}

/* Takes initial. */
static void
variable (Build *self, const char *name, MusterTensor *initial)
{
  if (has_resources (self))
    resource_variable (self, name, initial);
  else
    muster_graph_builder_variable (self->builder, name, initial);
  g_ptr_array_add (self->initialisers, g_strconcat (name, "/Assign", NULL));
  muster_tensor_unref (initial);
}

/* Adds one; after is a control input. */
static void
add_one (Build *self, const char *variable, const char *one, MusterDType dtype, const char *name,
         const char *after)
{
  node (self, has_resources (self) ? "AssignAddVariableOp" : "AssignAdd", name,
        INPUTS (variable, one, after));
  muster_graph_builder_attr_type (self->builder, has_resources (self) ? "dtype" : "T", dtype);
  /* TensorFlow loses an update of two at once without. */
  if (!has_resources (self))
    muster_graph_builder_attr_bool (self->builder, "use_locking", TRUE);
}

static void
scatter (Build *self)
{
  MusterGraphBuilder *builder = self->builder;
  node (self, has_resources (self) ? "ResourceScatterAdd" : "ScatterAdd", "count",
        INPUTS ("seen", "rows", "ones"));
  muster_graph_builder_attr_type (builder, has_resources (self) ? "dtype" : "T", MUSTER_INT64);
  muster_graph_builder_attr_type (builder, "Tindices", MUSTER_INT64);
  if (!has_resources (self))
    muster_graph_builder_attr_bool (builder, "use_locking", TRUE);
}

static MusterTensor *
zeros (MusterDType dtype, int n_dims, const gint64 *dims)
{
  MusterTensor *tensor = muster_tensor_new (dtype, n_dims, dims);
  memset (muster_tensor_data_mutable (tensor), 0, muster_tensor_n_bytes (tensor));
  return tensor;
}

/* Keeps a step busy for a while. A product that nobody reads wouldn't be computed. */
static void
work (Build *self, const char *name, const char *after)
{
  gint64 dims[] = {self->how->work, self->how->work};
  g_autofree char *matrix = g_strconcat (name, "/matrix", NULL);
  g_autofree char *product = g_strconcat (name, "/product", NULL);
  g_autoptr (MusterTensor) value = zeros (MUSTER_FLOAT, 2, dims);

  if (self->how->work == 0) {
    node (self, "NoOp", name, INPUTS (after));
    return;
  }
  muster_graph_builder_constant (self->builder, matrix, value);
  node (self, "MatMul", product, INPUTS (matrix, matrix, after));
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_FLOAT);
  node (self, "CheckNumerics", name, INPUTS (product));
  muster_graph_builder_attr_type (self->builder, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_string (self->builder, "message", name);
}

static void
add_all (Build *self)
{
  const gint64 n_rows = MUSTER_SEEN_ROWS, batch = MUSTER_SEEN_BATCH;
  g_autoptr (MusterTensor) ones = muster_tensor_new (MUSTER_INT64, 1, &batch);
  g_autoptr (MusterTensor) one = muster_tensor_new_int64 (1);
  g_autoptr (MusterTensor) one_float = muster_tensor_new_float (1);
  gint64 *values = muster_tensor_data_mutable (ones);
  for (gint64 i = 0; i < batch; i++)
    values[i] = 1;
  muster_graph_builder_placeholder (self->builder, "rows", MUSTER_INT64, 1, &batch);
  muster_graph_builder_constant (self->builder, "ones", ones);
  muster_graph_builder_constant (self->builder, "one", one);
  muster_graph_builder_constant (self->builder, "one_float", one_float);
  variable (self, "seen", zeros (MUSTER_INT64, 1, &n_rows));
  variable (self, "w", muster_tensor_new_float (0));
  variable (self, "global_step", muster_tensor_new_int64 (0));
  scatter (self);
  work (self, "work", "^count");
  add_one (self, "w", "one_float", MUSTER_FLOAT, "grow", "^work");
  work (self, "more_work", "^grow");
  add_one (self, "global_step", "one", MUSTER_INT64, "step", "^more_work");
  muster_graph_builder_group (self->builder, "train", INPUTS ("count", "grow", "step"));
  g_ptr_array_add (self->initialisers, NULL);
  muster_graph_builder_group (self->builder, "init",
                              (const char *const *)self->initialisers->pdata);
}

MusterMetaGraph *
muster_seen_model_new (const MusterSeenModel *how)
{
  static const MusterSeenModel plain;
  static const MusterCollectedOp ops[] = {{"train_op", "train"}, {"init_op", "init"}};
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (GPtrArray) initialisers = g_ptr_array_new_with_free_func (g_free);
  Build build = {builder, how != NULL ? how : &plain, initialisers};
  g_autoptr (GError) error = NULL;
  add_all (&build);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_assert_no_error (error);
  g_autoptr (MusterMetaGraph) bare = muster_meta_graph_new_for_graph (graph);
  MusterMetaGraph *model =
      muster_meta_graph_with_variables (bare, graph, NULL, 0, ops, G_N_ELEMENTS (ops), &error);
  g_assert_no_error (error);
  return model;
}

MusterTensor *
muster_seen_model_rows (void)
{
  const gint64 n = MUSTER_SEEN_ROWS;
  MusterTensor *rows = muster_tensor_new (MUSTER_INT64, 1, &n);
  gint64 *numbers = muster_tensor_data_mutable (rows);
  for (gint64 i = 0; i < n; i++)
    numbers[i] = i;
  return rows;
}

/* --- checking --- */

/* How often each row is in the batches. */
typedef struct {
  MusterBatches *batches;
  gint64 expected[MUSTER_SEEN_ROWS];
  gint64 n; /* batches */
} Expected;

static void
expect_batch (Expected *self, gint64 number)
{
  MusterTensor *batch;
  muster_batches_seek (self->batches, number);
  muster_batches_next (self->batches, &batch);
  for (gint64 i = 0; i < MUSTER_SEEN_BATCH; i++)
    self->expected[((const gint64 *)muster_tensor_data (batch))[i]]++;
  muster_tensor_unref (batch);
  self->n++;
}

/* The batches that the tasks of a job with a fixed number have done. */
static void
expect_fixed (Expected *self, const MusterTensor *done)
{
  const gint64 *counts = muster_tensor_data (done);
  const guint n_tasks = (guint)muster_tensor_n_elements (done);
  for (guint task = 0; task < n_tasks; task++)
    for (gint64 position = 0; position < counts[task]; position++)
      expect_batch (self, muster_position_batch (position, task, n_tasks));
}

static gboolean
is_in_hand (const MusterTensor *taken, gint64 deal)
{
  const gint64 *in_hand = muster_tensor_data (taken);
  for (gint64 i = 0; i < muster_tensor_n_elements (taken); i++)
    if (in_hand[i] == deal)
      return TRUE;
  return FALSE;
}

/* And those that were dealt since and aren't in hand: in order, what that job hadn't done. */
static void
expect_dealt (Expected *self, const MusterTensor *origin, const MusterTensor *taken, gint64 next)
{
  const gint64 *done = muster_tensor_data (origin);
  const gint64 n_tasks = muster_tensor_n_elements (origin);
  for (gint64 batch = 0, deal = 0; deal < next; batch++)
    if (batch / n_tasks >= done[batch % n_tasks] && !is_in_hand (taken, deal++))
      expect_batch (self, batch);
}

static char *
compare (const gint64 *seen, const gint64 *expected, float w, gint64 step, gint64 n)
{
  g_autoptr (GString) text = g_string_new (NULL);
  if ((gint64)w != n || step != n)
    g_string_append_printf (
        text, " %" G_GINT64_FORMAT " batches are done, w is %g, the step %" G_GINT64_FORMAT, n,
        (double)w, step);
  for (gint64 i = 0; i < MUSTER_SEEN_ROWS; i++)
    if (seen[i] != expected[i])
      g_string_append_printf (text,
                              " row %" G_GINT64_FORMAT " was seen %" G_GINT64_FORMAT
                              " times, not %" G_GINT64_FORMAT,
                              i, seen[i], expected[i]);
  return text->len > 0 ? g_strdup (text->str + 1) : NULL;
}

static MusterTensor *
read_one (MusterBundleReader *reader, const char *name)
{
  g_autoptr (GError) error = NULL;
  MusterTensor *value = muster_bundle_reader_read (reader, name, &error);
  if (value == NULL)
    g_printerr ("%s: %s\n", name, error->message);
  return value;
}

/* Whether both are counts of n tasks, and equal. */
static char *
check_rest (const char *prefix, const MusterTensor *begun, const MusterTensor *done, guint n)
{
  if (begun == NULL || done == NULL || muster_tensor_n_elements (done) != (gint64)n ||
      muster_tensor_n_elements (begun) != (gint64)n)
    return g_strdup_printf ("'%s' isn't of this model and %u tasks", prefix, n);
  if (memcmp (muster_tensor_data (begun), muster_tensor_data (done), n * sizeof (gint64)) != 0)
    return g_strdup_printf ("'%s': a batch was under way", prefix);
  return NULL;
}

static char *
expect_checkpoint (Expected *self, MusterBundleReader *reader, guint n_tasks)
{
  const gboolean is_dealt = muster_bundle_reader_find (reader, MUSTER_POSITION_TAKEN) != NULL;
  const char *prefix = muster_bundle_reader_prefix (reader);
  g_autoptr (MusterTensor) begun =
      read_one (reader, is_dealt ? MUSTER_POSITION_SLOT_BEGUN : MUSTER_POSITION_BEGUN);
  g_autoptr (MusterTensor) done =
      read_one (reader, is_dealt ? MUSTER_POSITION_SLOT_DONE : MUSTER_POSITION_DONE);
  char *wrong = check_rest (prefix, begun, done, n_tasks);

  if (wrong != NULL)
    return wrong;
  if (!is_dealt) {
    expect_fixed (self, done);
    return NULL;
  }
  g_autoptr (MusterTensor) origin = read_one (reader, MUSTER_POSITION_DONE);
  g_autoptr (MusterTensor) taken = read_one (reader, MUSTER_POSITION_TAKEN);
  g_autoptr (MusterTensor) next = read_one (reader, MUSTER_POSITION_NEXT);
  if (origin == NULL || taken == NULL || next == NULL ||
      muster_tensor_n_elements (taken) != (gint64)n_tasks)
    return g_strdup_printf ("'%s' isn't whole", prefix);
  expect_fixed (self, origin);
  expect_dealt (self, origin, taken, *(const gint64 *)muster_tensor_data (next));
  return NULL;
}

char *
muster_seen_model_check (const char *prefix, guint n_tasks, gint64 *n_done)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &error);
  if (reader == NULL)
    return g_strdup (error->message);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  g_autoptr (MusterTensor) seen = read_one (reader, "seen");
  g_autoptr (MusterTensor) w = read_one (reader, "w");
  g_autoptr (MusterTensor) step = read_one (reader, "global_step");
  Expected expected = {.batches = batches};
  if (seen == NULL || w == NULL || step == NULL)
    return g_strdup_printf ("'%s' isn't of this model", prefix);
  char *wrong = expect_checkpoint (&expected, reader, n_tasks);
  if (wrong != NULL)
    return wrong;
  if (n_done != NULL)
    *n_done = expected.n;
  return compare (muster_tensor_data (seen), expected.expected,
                  *(const float *)muster_tensor_data (w),
                  *(const gint64 *)muster_tensor_data (step), expected.n);
}
