// SPDX-License-Identifier: Apache-2.0
/* Summaries: what TensorBoard draws, as serialised tensorflow.Summary messages. */
#include "base/protowire.h"
#include "engine/kernels/strings.h"

#include "graph/tensor_proto.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Summary.value = 1; of Summary.Value: */
enum {
  SUMMARY_VALUE = 1,
  VALUE_TAG = 1,
  VALUE_SIMPLE = 2, /* float */
  VALUE_HISTOGRAM = 5,
  VALUE_NODE_NAME = 7,
  VALUE_TENSOR = 8,
  VALUE_METADATA = 9,
};

/* Of HistogramProto; the last two are packed. */
enum {
  HISTOGRAM_MIN = 1,
  HISTOGRAM_MAX = 2,
  HISTOGRAM_COUNT = 3,
  HISTOGRAM_SUM = 4,
  HISTOGRAM_SQUARES = 5,
  HISTOGRAM_LIMIT = 6,
  HISTOGRAM_BUCKET = 7,
};

static void
set_message (MusterKernel *k, GByteArray *message)
{
  MusterString bytes = {(const char *)message->data, message->len};

  muster_kernel_set_output (k, 0, muster_tensor_new_strings (0, NULL, &bytes));
}

static float
float_at (MusterTensor *wide, gint64 i)
{
  const void *data = muster_tensor_data (wide);

  switch (muster_tensor_dtype (wide)) {
  case MUSTER_FLOAT:
    return ((const float *)data)[i];
  case MUSTER_DOUBLE:
    return (float)((const double *)data)[i];
  case MUSTER_UINT64:
    return (float)((const guint64 *)data)[i];
  default:
    return (float)muster_int_at (wide, i);
  }
}

static gboolean
compute_scalar_summary (MusterKernel *k, GError **error)
{
  MusterTensor *tags = muster_kernel_input (k, 0);
  g_autoptr (MusterTensor) values = muster_wide_input (k, 1, error);
  g_autoptr (GByteArray) message = g_byte_array_new ();

  if (values == NULL)
    return FALSE;
  if (!muster_same_shape (tags, values) &&
      (muster_tensor_n_elements (tags) != 1 || muster_tensor_n_elements (values) != 1)) {
    g_autofree char *a = muster_shape_text (tags), *b = muster_shape_text (values);
    return muster_invalid (error, "tags and values are not the same shape: %s != %s", a, b);
  }
  for (gint64 i = 0; i < muster_tensor_n_elements (tags); i++) {
    MusterString tag = muster_tensor_string (tags, i);
    g_autoptr (GByteArray) value = g_byte_array_new ();
    muster_proto_put_bytes (value, VALUE_TAG, tag.data, tag.size);
    muster_proto_put_float (value, VALUE_SIMPLE, float_at (values, i));
    muster_proto_put_bytes (message, SUMMARY_VALUE, value->data, value->len);
  }
  set_message (k, message);
  return TRUE;
}

/* Notes the tags of one summary; FALSE for bytes that are no summary, or a tag seen before. */
static gboolean
note_tags (MusterString summary, GHashTable *seen, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (summary.data, summary.size);
  MusterProtoField field, inner;

  while (muster_proto_read_field (&reader, &field)) {
    MusterProtoReader value = muster_proto_reader (field.data, field.size);
    if (field.number != SUMMARY_VALUE || field.type != MUSTER_WIRE_BYTES)
      continue;
    while (muster_proto_read_field (&value, &inner)) {
      g_autofree char *tag = NULL;
      if (inner.number != VALUE_TAG || inner.type != MUSTER_WIRE_BYTES || inner.size == 0)
        continue;
      tag = g_strndup ((const char *)inner.data, inner.size);
      if (g_hash_table_contains (seen, tag)) {
        g_autofree char *valid = g_utf8_make_valid (tag, -1);
        return muster_invalid (error, "Duplicate tag %s found in summary inputs", valid);
      }
      g_hash_table_add (seen, g_steal_pointer (&tag));
    }
  }
  return muster_proto_at_end (&reader) ||
         muster_invalid (error, "Could not parse one of the summary inputs");
}

/* A message of repeated values: its parts one after the other. */
static gboolean
compute_merge_summary (MusterKernel *k, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GByteArray) message = g_byte_array_new ();

  for (int i = 0; i < muster_kernel_n_inputs (k); i++) {
    MusterTensor *x = muster_kernel_input (k, i);
    for (gint64 j = 0; j < muster_tensor_n_elements (x); j++) {
      MusterString summary = muster_tensor_string (x, j);
      if (summary.size == 0)
        continue;
      if (!note_tags (summary, seen, error))
        return FALSE;
      g_byte_array_append (message, (const guint8 *)summary.data, (guint)summary.size);
    }
  }
  set_message (k, message);
  return TRUE;
}

/* TensorFlow's buckets: from 1e-12 to 1e20, each a tenth wider than the one before; the same below
 * zero, and one around it. */
#define MAX_LIMITS 2000

typedef struct {
  int n;
  double limits[MAX_LIMITS];
} Buckets;

static const Buckets *
buckets (void)
{
  static gsize done;
  static Buckets all;
  double positive[MAX_LIMITS / 2];
  int n = 0;

  if (!g_once_init_enter (&done))
    return &all;
  for (double v = 1.0e-12; v < 1.0e20; v *= 1.1)
    positive[n++] = v;
  positive[n++] = DBL_MAX;
  for (int i = 0; i < n; i++)
    all.limits[i] = -positive[n - 1 - i];
  all.limits[n] = 0;
  for (int i = 0; i < n; i++)
    all.limits[n + 1 + i] = positive[i];
  all.n = 2 * n + 1;
  g_once_init_leave (&done, 1);
  return &all;
}

/* The first bucket whose limit is above the value. */
static int
bucket_of (const Buckets *b, double value)
{
  int low = 0, high = b->n - 1;

  while (low < high) {
    int middle = (low + high) / 2;
    if (b->limits[middle] > value)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static void
put_packed (GByteArray *out, guint32 number, const GArray *values)
{
  muster_proto_put_bytes (out, number, values->data, values->len * sizeof (double));
}

/* A run of empty buckets becomes one. */
static void
put_buckets (GByteArray *out, const Buckets *b, const double *counts)
{
  g_autoptr (GArray) limits = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) filled = g_array_new (FALSE, FALSE, sizeof (double));

  for (int i = 0; i < b->n; i++) {
    const double count = counts[i];
    while (count <= 0 && i + 1 < b->n && counts[i + 1] <= 0)
      i++;
    g_array_append_val (limits, b->limits[i]);
    g_array_append_val (filled, count);
  }
  put_packed (out, HISTOGRAM_LIMIT, limits);
  put_packed (out, HISTOGRAM_BUCKET, filled);
}

static void
put_nonzero (GByteArray *out, guint32 number, double value)
{
  if (value != 0 || signbit (value))
    muster_proto_put_double (out, number, value);
}

static gboolean
compute_histogram_summary (MusterKernel *k, GError **error)
{
  MusterTensor *tags = muster_kernel_input (k, 0);
  g_autoptr (MusterTensor) values = muster_wide_input (k, 1, error);
  g_autoptr (GByteArray) message = g_byte_array_new (), value = g_byte_array_new ();
  g_autoptr (GByteArray) histogram = g_byte_array_new ();
  const Buckets *b = buckets ();
  g_autofree double *counts = g_new0 (double, b->n);
  double least = DBL_MAX, largest = -DBL_MAX, sum = 0, squares = 0;
  MusterString tag;

  if (values == NULL)
    return FALSE;
  if (muster_tensor_n_dims (tags) != 0)
    return muster_invalid (error, "tags must be scalar");
  tag = muster_tensor_string (tags, 0);
  for (gint64 i = 0; i < muster_tensor_n_elements (values); i++) {
    double v = muster_double_at (values, i);
    if (isnan (v) || isinf (v)) {
      return muster_invalid (error, "%s for: %s",
                             isnan (v) ? "Nan in summary histogram" : "Infinity in Histogram",
                             muster_kernel_node (k)->name);
    }
    counts[bucket_of (b, v)] += 1;
    least = MIN (least, v);
    largest = MAX (largest, v);
    sum += v;
    squares += v * v;
  }
  put_nonzero (histogram, HISTOGRAM_MIN, least);
  put_nonzero (histogram, HISTOGRAM_MAX, largest);
  put_nonzero (histogram, HISTOGRAM_COUNT, (double)muster_tensor_n_elements (values));
  put_nonzero (histogram, HISTOGRAM_SUM, sum);
  put_nonzero (histogram, HISTOGRAM_SQUARES, squares);
  put_buckets (histogram, b, counts);
  muster_proto_put_bytes (value, VALUE_TAG, tag.data, tag.size);
  muster_proto_put_bytes (value, VALUE_HISTOGRAM, histogram->data, histogram->len);
  muster_proto_put_bytes (message, SUMMARY_VALUE, value->data, value->len);
  set_message (k, message);
  return TRUE;
}

static gboolean
compute_tensor_summary (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  g_autoptr (GBytes) tensor = muster_tensor_proto_write (muster_kernel_input (k, 0));
  g_autoptr (GByteArray) message = g_byte_array_new (), value = g_byte_array_new ();
  const char *name = muster_kernel_node (k)->name;

  muster_proto_put_bytes (value, VALUE_NODE_NAME, name, strlen (name));
  muster_proto_put_bytes (value, VALUE_TENSOR, g_bytes_get_data (tensor, NULL),
                          g_bytes_get_size (tensor));
  muster_proto_put_bytes (message, SUMMARY_VALUE, value->data, value->len);
  set_message (k, message);
  return TRUE;
}

static gboolean
compute_tensor_summary_v2 (MusterKernel *k, GError **error)
{
  g_autoptr (GBytes) tensor = muster_tensor_proto_write (muster_kernel_input (k, 1));
  g_autoptr (GByteArray) message = g_byte_array_new (), value = g_byte_array_new ();
  MusterString tag, metadata;
  MusterProtoField field;

  if (muster_tensor_n_dims (muster_kernel_input (k, 0)) != 0)
    return muster_invalid (error, "tag must be scalar");
  if (muster_tensor_n_dims (muster_kernel_input (k, 2)) != 0)
    return muster_invalid (error, "serialized_summary_metadata must be scalar");
  tag = muster_tensor_string (muster_kernel_input (k, 0), 0);
  metadata = muster_tensor_string (muster_kernel_input (k, 2), 0);
  MusterProtoReader reader = muster_proto_reader (metadata.data, metadata.size);
  while (muster_proto_read_field (&reader, &field))
    ;
  if (!muster_proto_at_end (&reader))
    return muster_invalid (error, "Could not parse serialized_summary_metadata");
  if (tag.size > 0)
    muster_proto_put_bytes (value, VALUE_TAG, tag.data, tag.size);
  muster_proto_put_bytes (value, VALUE_TENSOR, g_bytes_get_data (tensor, NULL),
                          g_bytes_get_size (tensor));
  muster_proto_put_bytes (value, VALUE_METADATA, metadata.data, metadata.size);
  muster_proto_put_bytes (message, SUMMARY_VALUE, value->data, value->len);
  set_message (k, message);
  return TRUE;
}

const MusterOp muster_summary_ops[] = {
    {"ScalarSummary", "tags:string, values:T -> summary:string", "T:real", compute_scalar_summary,
     0},
    {"HistogramSummary", "tag:string, values:T -> summary:string", "T:real",
     compute_histogram_summary, 0},
    {"TensorSummary", "tensor:T -> summary:string", "T:any", compute_tensor_summary, 0},
    {"TensorSummaryV2",
     "tag:string, tensor:T, serialized_summary_metadata:string -> summary:string", "T:any",
     compute_tensor_summary_v2, 0},
    {"MergeSummary", "inputs:N*string -> summary:string", "", compute_merge_summary, 0},
    {NULL, NULL, NULL, NULL, 0},
};
