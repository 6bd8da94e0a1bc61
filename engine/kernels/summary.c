// SPDX-License-Identifier: Apache-2.0
/* Summaries: what TensorBoard draws, as serialised tensorflow.Summary messages. */
#include "base/protowire.h"
#include "engine/kernels/dispatch.h"

#include <string.h>

/* Summary.value = 1; Value.tag = 1, Value.simple_value = 2 (float) */
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2 };

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

const MusterOp muster_summary_ops[] = {
    {"ScalarSummary", "tags:string, values:T -> summary:string", "T:real", compute_scalar_summary,
     0},
    {"MergeSummary", "inputs:N*string -> summary:string", "", compute_merge_summary, 0},
    {NULL, NULL, NULL, NULL, 0},
};
