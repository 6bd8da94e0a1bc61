// SPDX-License-Identifier: Apache-2.0
#include "rpc/messages/run_step_private.h"

#include "base/clock.h"

/* Names and metadata come to it, so that a message of this size may still be refused as a whole;
 * here it is only about never writing far more. */
#define MAX_TENSORS ((gsize)G_MAXINT32)

gboolean
muster_step_tensors_fit (MusterTensor *const *tensors, gsize n, GError **error)
{
  gsize size = 0;
  for (gsize i = 0; i < n && size <= MAX_TENSORS; i++)
    size += muster_tensor_proto_size (tensors[i]);
  if (size <= MAX_TENSORS)
    return TRUE;
  g_autofree char *text = muster_format_size (size);
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "the step's tensors need a message of %s or more, over the limit of 2.1 GB; "
                      "use fewer or smaller tensors",
                      text);
}

gboolean
muster_field_refuse (const char *what, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "malformed %s: %s", what, why);
}

gboolean
muster_field_is_text (const MusterProtoField *field)
{
  return field->type == MUSTER_WIRE_BYTES &&
         (field->size == 0 || g_utf8_validate_len ((const char *)field->data, field->size, NULL));
}

GBytes *
muster_field_to_bytes (GBytes *message, const MusterProtoField *field)
{
  const guint8 *start = g_bytes_get_data (message, NULL);
  return field->size == 0 ? g_bytes_new (NULL, 0)
                          : g_bytes_new_from_bytes (message, field->data - start, field->size);
}

gboolean
muster_named_tensor_read (const MusterProtoField *field, MusterNamedTensor *out)
{
  if (field->type != MUSTER_WIRE_BYTES)
    return FALSE;
  *out = (MusterNamedTensor){.name = "", .tensor = (const guint8 *)""};
  MusterProtoReader reader = muster_proto_reader (field->data, field->size);
  MusterProtoField inner;
  while (muster_proto_read_field (&reader, &inner)) {
    if (inner.number == 1) {
      if (!muster_field_is_text (&inner))
        return FALSE;
      out->name = (const char *)inner.data;
      out->name_size = inner.size;
    } else if (inner.number == 2) {
      if (inner.type != MUSTER_WIRE_BYTES || out->tensor_size > 0)
        return FALSE; /* a tensor that comes twice isn't merged but refused */
      out->tensor = inner.data;
      out->tensor_size = inner.size;
    }
  }
  return muster_proto_at_end (&reader);
}

void
muster_named_tensor_put (MusterRope *out, guint32 number, const char *name, MusterTensor *tensor)
{
  g_auto (MusterRope) inner = MUSTER_ROPE_INIT;
  muster_proto_put_string (muster_rope_tail (&inner), 1, name);
  muster_tensor_proto_put (&inner, 2, tensor);
  muster_proto_put_head (muster_rope_tail (out), number, muster_rope_size (&inner));
  GPtrArray *pieces = muster_rope_pieces (&inner);
  for (guint i = 0; i < pieces->len; i++)
    muster_rope_append (out, pieces->pdata[i]);
}
