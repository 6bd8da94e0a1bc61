// SPDX-License-Identifier: Apache-2.0
/* Replays what TensorFlow's kernels computed (record.py) on the local master. */
#include "engine/session/local_master.h"
#include "tests/engine/golden.h"

#include <math.h>

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
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, step->fetches->len + 1);
  g_autoptr (GError) error = NULL;

  if (!golden_run (session, step, fetched, &error)) {
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

MUSTER_TEST (kernels, compute_what_tensorflow_computed)
{
  MUSTER_EXPECT_GT (golden_run_all (run_case), 4500);
}
