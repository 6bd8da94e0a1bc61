// SPDX-License-Identifier: Apache-2.0
#include "server/core/nested_message_private.h"

#include "base/error.h"
#include "base/protowire_private.h"

gboolean
muster_server_nested_message (GBytes *message, guint32 number, GBytes **found, GError **error)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (message, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  g_autoptr (GBytes) whole = NULL;
  g_autoptr (GByteArray) parts = NULL;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != number || field.type != MUSTER_WIRE_BYTES)
      continue;
    if (whole == NULL) {
      whole = g_bytes_new_from_bytes (message, field.data - data, field.size);
      continue;
    }
    if (parts == NULL) {
      parts = g_byte_array_new ();
      g_byte_array_append (parts, g_bytes_get_data (whole, NULL), g_bytes_get_size (whole));
    }
    g_byte_array_append (parts, field.data, field.size);
  }
  if (!muster_proto_at_end (&reader)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The request ends in the middle of a field, or has one that is malformed");
  }
  *found = parts != NULL ? g_byte_array_free_to_bytes (g_steal_pointer (&parts))
                         : g_steal_pointer (&whole);
  return TRUE;
}

GBytes *
muster_server_nested_graph (GBytes *message, guint32 number, GError **error)
{
  GBytes *graph = NULL;
  if (!muster_server_nested_message (message, number, &graph, error))
    return NULL;
  return graph != NULL ? graph : g_bytes_new_static ("", 0);
}
