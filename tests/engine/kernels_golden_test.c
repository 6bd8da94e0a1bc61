// SPDX-License-Identifier: Apache-2.0
/* Replays what TensorFlow's kernels computed (record_*.py, a file for each) on the local master. */
#include "base/protowire.h"
#include "engine/local_master.h"
#include "graph/tensor_proto.h"
#include "tests/gtest_shim.h"

#include <math.h>
#include <string.h>

typedef struct {
  char *name;           /* (owned) */
  MusterTensor *tensor; /* (owned) (nullable) */
} Named;

typedef struct {
  GArray *feeds;      /* (owned) of Named */
  GArray *fetches;    /* (owned) of Named */
  GPtrArray *targets; /* (owned) */
  int code;
  char *words; /* (owned) (nullable) */
} Step;

static void
named_clear (gpointer data)
{
  Named *self = data;

  g_free (self->name);
  muster_tensor_unref (self->tensor);
}

static void
step_init (Step *self)
{
  memset (self, 0, sizeof *self);
  self->feeds = g_array_new (FALSE, TRUE, sizeof (Named));
  self->fetches = g_array_new (FALSE, TRUE, sizeof (Named));
  self->targets = g_ptr_array_new_with_free_func (g_free);
  g_array_set_clear_func (self->feeds, named_clear);
  g_array_set_clear_func (self->fetches, named_clear);
}

static void
step_clear (Step *self)
{
  g_array_unref (self->feeds);
  g_array_unref (self->fetches);
  g_ptr_array_unref (self->targets);
  g_free (self->words);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Step, step_clear)

static char *
field_text (const MusterProtoField *field)
{
  return g_strndup ((const char *)field->data, field->size);
}

static void
read_named (const MusterProtoField *message, GArray *list)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;
  Named named = {NULL, NULL};

  while (muster_proto_read_field (&reader, &field)) {
    g_autoptr (GError) error = NULL;
    if (field.number == 1)
      named.name = field_text (&field);
    else
      named.tensor = muster_tensor_proto_read (field.data, field.size, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  g_array_append_val (list, named);
}

static void
read_step (const MusterProtoField *message, Step *step)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;

  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == 1)
      read_named (&field, step->feeds);
    else if (field.number == 2)
      read_named (&field, step->fetches);
    else if (field.number == 3)
      g_ptr_array_add (step->targets, field_text (&field));
    else if (field.number == 4)
      step->code = (int)field.value;
    else
      step->words = field_text (&field);
  }
}

/* The type of a number that is compared by itself: a complex one is two. */
static MusterDType
part_of (MusterDType dtype)
{
  return dtype == MUSTER_COMPLEX64    ? MUSTER_FLOAT
         : dtype == MUSTER_COMPLEX128 ? MUSTER_DOUBLE
                                      : dtype;
}

static double
value_at (const MusterTensor *tensor, gint64 i)
{
  const void *data = muster_tensor_data (tensor);

  switch (part_of (muster_tensor_dtype (tensor))) {
  case MUSTER_FLOAT:
    return ((const float *)data)[i];
  case MUSTER_DOUBLE:
    return ((const double *)data)[i];
  case MUSTER_HALF:
    return muster_half_to_float (((const guint16 *)data)[i]);
  default:
    return muster_bfloat16_to_float (((const guint16 *)data)[i]);
  }
}

/* How far two results of the same formula may be apart: a few units in the last place, or in that
 * of the terms that cancelled. muster computes the 16-bit types in float, TensorFlow rounds at each
 * operation. */
static double
tolerance (MusterDType dtype, double value)
{
  double relative = dtype == MUSTER_DOUBLE ? 1e-10 : dtype == MUSTER_FLOAT ? 1e-5 : 2e-2;

  return relative * MAX (fabs (value), dtype == MUSTER_DOUBLE || dtype == MUSTER_FLOAT ? 0.1 : 1);
}

static gboolean
is_float (MusterDType dtype)
{
  return dtype == MUSTER_FLOAT || dtype == MUSTER_DOUBLE || dtype == MUSTER_HALF ||
         dtype == MUSTER_BFLOAT16;
}

static gboolean
same (const MusterTensor *a, const MusterTensor *b)
{
  MusterDType part = part_of (muster_tensor_dtype (a));
  int n = muster_tensor_n_dims (a);
  gint64 parts = muster_tensor_n_elements (a) * (part == muster_tensor_dtype (a) ? 1 : 2);

  if (muster_tensor_equal (a, b))
    return TRUE;
  if (muster_tensor_dtype (a) != muster_tensor_dtype (b) || n != muster_tensor_n_dims (b) ||
      !is_float (part) ||
      (n > 0 && memcmp (muster_tensor_dims (a), muster_tensor_dims (b), n * sizeof (gint64)) != 0))
    return FALSE;
  for (gint64 i = 0; i < parts; i++) {
    double x = value_at (a, i), y = value_at (b, i);
    gboolean close = fabs (x - y) <= tolerance (part, y);
    if (!close && x != y && !(isnan (x) && isnan (y)))
      return FALSE;
  }
  return TRUE;
}

static void
expect_same (const char *where, const Named *wanted, const MusterTensor *got)
{
  g_autofree char *a = NULL, *b = NULL, *shape = NULL;

  if (wanted->tensor == NULL || same (wanted->tensor, got))
    return;
  a = muster_tensor_to_string (wanted->tensor, 30);
  b = muster_tensor_to_string (got, 30);
  shape = muster_shape_to_string (muster_tensor_n_dims (got), muster_tensor_dims (got));
  MUSTER_FAIL ("%s, %s: TensorFlow has %s %s, muster %s %s of shape %s", where, wanted->name,
               muster_dtype_name (muster_tensor_dtype (wanted->tensor)), a,
               muster_dtype_name (muster_tensor_dtype (got)), b, shape);
}

static void
check_failure (const char *where, const Step *step, const GError *error)
{
  if (step->code == 0)
    MUSTER_FAIL ("%s: %s", where, error->message);
  else if (error->domain != MUSTER_ERROR || error->code != step->code)
    MUSTER_FAIL ("%s: TensorFlow says %d, muster %d: %s", where, step->code, error->code,
                 error->message);
  else if (step->words != NULL && strstr (error->message, step->words) == NULL)
    MUSTER_FAIL ("%s: '%s' isn't in '%s'", where, step->words, error->message);
}

static void
run_step (MusterSession *session, const char *where, Step *step)
{
  g_autoptr (GArray) feeds = g_array_new (FALSE, TRUE, sizeof (MusterFeed));
  g_autoptr (GPtrArray) fetches = g_ptr_array_new ();
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, step->fetches->len + 1);
  g_autoptr (GError) error = NULL;
  MusterStep wanted = {.deadline_us = MUSTER_WAIT_FOREVER};

  for (guint i = 0; i < step->feeds->len; i++) {
    Named *named = &g_array_index (step->feeds, Named, i);
    MusterFeed feed = {named->name, named->tensor};
    g_array_append_val (feeds, feed);
  }
  for (guint i = 0; i < step->fetches->len; i++)
    g_ptr_array_add (fetches, g_array_index (step->fetches, Named, i).name);
  wanted.feeds = (const MusterFeed *)feeds->data;
  wanted.n_feeds = feeds->len;
  wanted.fetches = (const char *const *)fetches->pdata;
  wanted.n_fetches = fetches->len;
  wanted.targets = (const char *const *)step->targets->pdata;
  wanted.n_targets = step->targets->len;

  if (!muster_session_run (session, &wanted, fetched, NULL, NULL, &error)) {
    check_failure (where, step, error);
    return;
  }
  if (step->code != 0)
    MUSTER_FAIL ("%s: TensorFlow fails with %d, muster doesn't", where, step->code);
  for (guint i = 0; i < step->fetches->len; i++) {
    expect_same (where, &g_array_index (step->fetches, Named, i), fetched[i]);
    muster_tensor_unref (fetched[i]);
  }
}

static void
run_case (const MusterProtoField *message)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = NULL;
  g_autofree char *name = NULL;
  MusterProtoField field;
  int n = 0;

  while (muster_proto_read_field (&reader, &field)) {
    g_autoptr (GError) error = NULL;
    if (field.number == 1) {
      name = field_text (&field);
    } else if (field.number == 2) {
      g_autoptr (GBytes) bytes = g_bytes_new (field.data, field.size);
      g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
      session =
          muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
      if (session == NULL) {
        MUSTER_FAIL ("%s: %s", name, error->message);
        return;
      }
    } else {
      g_autofree char *where = g_strdup_printf ("%s, step %d", name, n++);
      g_auto (Step) step;
      step_init (&step);
      read_step (&field, &step);
      run_step (session, where, &step);
    }
  }
}

static GBytes *
decompress (const char *data, gsize size, GError **error)
{
  g_autoptr (GConverter) gzip =
      G_CONVERTER (g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP));
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();
  g_autoptr (GOutputStream) stream = g_converter_output_stream_new (memory, gzip);

  if (!g_output_stream_write_all (stream, data, size, NULL, NULL, error) ||
      !g_output_stream_close (stream, NULL, error))
    return NULL;
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
}

/* The number of cases in a file. */
static int
run_cases (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *file = NULL;
  g_autoptr (GBytes) data = NULL;
  MusterProtoReader reader;
  gsize size = 0;
  guint64 length;
  int n = 0;

  if (g_file_get_contents (path, &file, &size, &error))
    data = decompress (file, size, &error);
  if (data == NULL) {
    MUSTER_FAIL ("%s: %s", path, error->message);
    return 0;
  }
  reader = muster_proto_reader (g_bytes_get_data (data, NULL), g_bytes_get_size (data));
  while (!muster_proto_at_end (&reader)) {
    if (!muster_proto_read_varint (&reader, &length) || length > (gsize)(reader.end - reader.at)) {
      MUSTER_FAIL ("%s is damaged", path);
      return n;
    }
    run_case (&(MusterProtoField){.data = reader.at, .size = length});
    reader.at += length;
    n++;
  }
  return n;
}

MUSTER_TEST (kernels, compute_what_tensorflow_computed)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) folder = g_dir_open ("tests/engine", 0, &error);
  const char *name;
  int n = 0;

  MUSTER_ASSERT_NO_ERROR (error);
  while ((name = g_dir_read_name (folder)) != NULL)
    if (g_str_has_suffix (name, ".golden")) {
      g_autofree char *path = g_build_filename ("tests/engine", name, NULL);
      n += run_cases (path);
    }
  MUSTER_EXPECT_GT (n, 1000);
}
