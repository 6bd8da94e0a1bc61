// SPDX-License-Identifier: Apache-2.0
#include "tests/checkpoint/valued.h"

#include "checkpoint/format/bundle_reader.h"

#include <string.h>

MusterBundleWriter *
valued_writer (MusterStorage *storage, const char *prefix, const char *name, guint8 value,
               guint n_shards, GError **error)
{
  static const gint64 sizes[] = {1, 5000, 7};
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, error);
  for (gsize i = 0; writer != NULL && i < G_N_ELEMENTS (sizes); i++) {
    g_autofree char *key = g_strdup_printf ("%s/%d", name, (int)i);
    g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_UINT8, 1, &sizes[i]);
    memset (muster_tensor_data_mutable (tensor), value, (gsize)sizes[i]);
    if (!muster_bundle_writer_add (writer, key, tensor, error))
      return NULL;
  }
  if (writer != NULL)
    muster_bundle_writer_set_n_shards (writer, n_shards);
  return g_steal_pointer (&writer);
}

gboolean
valued_write (MusterStorage *storage, const char *prefix, const char *name, guint8 value,
              guint n_shards, GError **error)
{
  g_autoptr (MusterBundleWriter) writer =
      valued_writer (storage, prefix, name, value, n_shards, error);
  return writer != NULL && muster_bundle_writer_finish (writer, error);
}

int
valued_read (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, error);
  int value = -1;
  if (reader == NULL || !muster_bundle_reader_verify (reader, NULL, NULL, NULL, error))
    return -1;
  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++) {
    const char *name = muster_bundle_reader_entry (reader, i)->name;
    g_autoptr (MusterTensor) tensor = muster_bundle_reader_read (reader, name, error);
    if (tensor == NULL)
      return -1;
    const guint8 *data = muster_tensor_data (tensor);
    if (value >= 0 && data[0] != value)
      return -1;
    value = data[0];
  }
  return value;
}
