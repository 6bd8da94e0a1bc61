// SPDX-License-Identifier: Apache-2.0
/* Summaries for TensorBoard, as serialised tensorflow.Summary messages. */
#include "base/protowire_private.h"
#include "engine/kernels/common/strings.h"
#include "engine/kernels/io/io_op_tables.h"

#include "graph/tensor_proto_private.h"

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

/* Fields of HistogramProto; the last two are packed. */
enum {
  HISTOGRAM_MIN = 1,
  HISTOGRAM_MAX = 2,
  HISTOGRAM_COUNT = 3,
  HISTOGRAM_SUM = 4,
  HISTOGRAM_SQUARES = 5,
  HISTOGRAM_LIMIT = 6,
  HISTOGRAM_BUCKET = 7,
};

/* Writes the headers of a value that starts with a field of inner bytes, followed by size more
 * bytes. */
static void
put_heads (MusterText *message, gsize size, guint32 number, gsize inner)
{
  muster_text_put_head (message, SUMMARY_VALUE,
                        size + muster_text_head_size (number, inner) + inner);
  muster_text_put_head (message, number, inner);
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
  g_auto (MusterText) message = MUSTER_TEXT_INIT (k);
  if (values == NULL)
    return FALSE;
  if (!muster_same_shape (tags, values) &&
      (muster_tensor_n_elements (tags) != 1 || muster_tensor_n_elements (values) != 1)) {
    g_autofree char *a = muster_shape_text (tags), *b = muster_shape_text (values);
    return muster_invalid (error, "tags and values are not the same shape: %s != %s", a, b);
  }
  for (gint64 i = 0; i < muster_tensor_n_elements (tags) && !message.failed; i++) {
    MusterString tag = muster_tensor_string (tags, i);
    g_autoptr (GByteArray) number = g_byte_array_new ();
    muster_proto_put_float (number, VALUE_SIMPLE, float_at (values, i));
    put_heads (&message, number->len, VALUE_TAG, tag.size);
    muster_text_append_string (&message, tag);
    muster_text_append (&message, number->data, number->len);
  }
  return muster_text_end (&message, k, 0, error);
}

/* The memory of a tag in a GHashTable, beside its bytes. */
#define TAG_OVERHEAD 96

/* Records the tags of one summary; returns FALSE if it isn't a summary or a tag was seen before. */
static gboolean
note_tags (MusterString summary, GHashTable *seen, MusterBudget *budget, GError **error)
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
      if (!muster_budget_take (budget, inner.size + TAG_OVERHEAD, error))
        return FALSE;
      tag = g_strndup ((const char *)inner.data, inner.size);
      if (g_hash_table_contains (seen, tag)) {
        g_autofree char *valid =
            muster_string_text ((MusterString){(const char *)inner.data, inner.size});
        return muster_invalid (error, "Duplicate tag %s found in summary inputs", valid);
      }
      g_hash_table_add (seen, g_steal_pointer (&tag));
    }
  }
  return muster_proto_at_end (&reader) ||
         muster_invalid (error, "Could not parse one of the summary inputs");
}

/* Merged summaries are their concatenation. */
static gboolean
compute_merge_summary (MusterKernel *k, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_auto (MusterText) message = MUSTER_TEXT_INIT (k);
  for (int i = 0; i < muster_kernel_n_inputs (k); i++) {
    MusterTensor *x = muster_kernel_input (k, i);
    for (gint64 j = 0; j < muster_tensor_n_elements (x); j++) {
      MusterString summary = muster_tensor_string (x, j);
      if (summary.size == 0)
        continue;
      if (!note_tags (summary, seen, muster_kernel_budget (k), error))
        return FALSE;
      muster_text_append_string (&message, summary);
    }
  }
  return muster_text_end (&message, k, 0, error);
}

/* TensorFlow's buckets: from 1e-12 to 1e20, each 10 % wider than the previous one, the same below
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

/* Writes the buckets; consecutive empty ones become one. */
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
  g_auto (MusterText) message = MUSTER_TEXT_INIT (k);
  g_autoptr (GByteArray) histogram = g_byte_array_new (), field = g_byte_array_new ();
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
  muster_proto_put_bytes (field, VALUE_HISTOGRAM, histogram->data, histogram->len);
  put_heads (&message, field->len, VALUE_TAG, tag.size);
  muster_text_append_string (&message, tag);
  muster_text_append (&message, field->data, field->len);
  return muster_text_end (&message, k, 0, error);
}

/* Sets a summary of one value with a tensor. before is the field before the tensor, metadata
 * (nullable) the one after it. */
static gboolean
set_tensor_summary (MusterKernel *k, MusterTensor *tensor, guint32 before_number,
                    MusterString before, const MusterString *metadata, GError **error)
{
  g_auto (MusterText) message = MUSTER_TEXT_INIT (k);
  g_autoptr (GBytes) bytes =
      muster_tensor_proto_try_write (tensor, muster_kernel_budget (k), error);
  gsize size, rest = 0;

  if (bytes == NULL)
    return FALSE;
  const void *data = g_bytes_get_data (bytes, &size);
  if (before.size > 0)
    rest += muster_text_head_size (before_number, before.size) + before.size;
  if (metadata != NULL)
    rest += muster_text_head_size (VALUE_METADATA, metadata->size) + metadata->size;
  muster_text_put_head (&message, SUMMARY_VALUE,
                        rest + muster_text_head_size (VALUE_TENSOR, size) + size);
  if (before.size > 0) {
    muster_text_put_head (&message, before_number, before.size);
    muster_text_append_string (&message, before);
  }
  muster_text_put_head (&message, VALUE_TENSOR, size);
  muster_text_append (&message, data, size);
  if (metadata != NULL) {
    muster_text_put_head (&message, VALUE_METADATA, metadata->size);
    muster_text_append_string (&message, *metadata);
  }
  return muster_text_end (&message, k, 0, error);
}

static gboolean
compute_tensor_summary (MusterKernel *k, GError **error)
{
  const char *name = muster_kernel_node (k)->name;
  const MusterString node = {name, strlen (name)};
  return set_tensor_summary (k, muster_kernel_input (k, 0), VALUE_NODE_NAME, node, NULL, error);
}

static gboolean
compute_tensor_summary_v2 (MusterKernel *k, GError **error)
{
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
  return set_tensor_summary (k, muster_kernel_input (k, 1), VALUE_TAG, tag, &metadata, error);
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
