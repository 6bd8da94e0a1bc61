// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/protowire.h"
#include "checkpoint/format/bundle_index.h"

/* More than the names of data files are made for: no program writes so many. */
#define SHARDS_MAX 99999

typedef struct {
  GArray *sizes; /* (element-type guint64) by shard; empty before the header */
} Measure;

static gboolean
data_loss (GError **error, const char *why)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, why);
  return FALSE;
}

static gboolean
read_header (Measure *self, MusterProtoReader *reader, GError **error)
{
  MusterProtoField field;
  guint64 n_shards = 0;
  while (muster_proto_read_field (reader, &field))
    if (field.number == 1 && field.type == MUSTER_WIRE_VARINT)
      n_shards = field.value;
  if (!muster_proto_at_end (reader) || n_shards < 1 || n_shards > SHARDS_MAX)
    return data_loss (error, "the header tells of no number of data files that can be");
  g_array_set_size (self->sizes, (guint)n_shards);
  return TRUE;
}

/* An entry's place: shard_id, offset, size, and whether it is a tensor in slices, which has none.
 */
static gboolean
read_entry (Measure *self, MusterProtoReader *reader, GError **error)
{
  MusterProtoField field;
  guint64 place[3] = {0};
  gboolean is_sliced = FALSE;
  while (muster_proto_read_field (reader, &field)) {
    if (field.number >= 3 && field.number <= 5 && field.type == MUSTER_WIRE_VARINT)
      place[field.number - 3] = field.value;
    is_sliced = is_sliced || field.number == 7;
  }
  if (!muster_proto_at_end (reader) || place[0] >= self->sizes->len || place[1] > G_MAXINT64 ||
      place[2] > G_MAXINT64 - place[1])
    return data_loss (error, "an entry points to no place in a data file");
  guint64 *size = &g_array_index (self->sizes, guint64, (guint)place[0]);
  if (!is_sliced)
    *size = MAX (*size, place[1] + place[2]);
  return TRUE;
}

static gboolean
measure_one (const guint8 *key, gsize key_size, const guint8 *value, gsize value_size,
             gpointer user_data, GError **error)
{
  Measure *self = user_data;
  MusterProtoReader reader = muster_proto_reader (value, value_size);
  (void)key;
  if (self->sizes->len > 0)
    return read_entry (self, &reader, error);
  return key_size == 0 ? read_header (self, &reader, error)
                       : data_loss (error, "the header is missing");
}

/* Ends the walk where it began. */
static gboolean
read_first (const guint8 *key, gsize key_size, const guint8 *value, gsize value_size,
            gpointer user_data, GError **error)
{
  (void)measure_one (key, key_size, value, value_size, user_data, error);
  return FALSE;
}

gboolean
muster_bundle_index_count_shards (MusterStorage *storage, const char *prefix, gint32 *n_shards,
                                  GError **error)
{
  g_autoptr (GArray) sizes = g_array_new (FALSE, TRUE, sizeof (guint64));
  Measure self = {.sizes = sizes};
  if (!muster_bundle_index_walk (storage, prefix, read_first, &self, NULL, error))
    return FALSE;
  *n_shards = (gint32)sizes->len;
  return TRUE;
}

GArray *
muster_bundle_index_measure (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (GArray) sizes = g_array_new (FALSE, TRUE, sizeof (guint64));
  Measure self = {.sizes = sizes};
  return muster_bundle_index_walk (storage, prefix, measure_one, &self, NULL, error)
             ? g_steal_pointer (&sizes)
             : NULL;
}
