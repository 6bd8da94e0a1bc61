// SPDX-License-Identifier: Apache-2.0
/* Writes a table in LevelDB's format, block by block: entries with shared prefixes, restarts, a
 * checksum, then the index block and the footer. */
#include "checkpoint/format/leveldb_table_private.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/protowire_private.h"

#include <string.h>

/* A block ends at this size. Every RESTART_INTERVAL entries a key is stored whole. */
#define BLOCK_SIZE       4096
#define RESTART_INTERVAL 16
#define TRAILER_SIZE     5
#define FOOTER_SIZE      48

const guint8 muster_table_magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

typedef struct {
  gsize offset, size;
} Block;

struct _MusterTableBuilder {
  guint8 *data; /* (owned) the table so far */
  gsize size, capacity;
  gsize block;      /* start of the current block */
  GArray *restarts; /* (owned) (element-type guint32) of the current block */
  guint n_since;    /* entries since the last restart */
  guint8 *key;      /* (owned) the last one */
  gsize key_size, key_capacity;
  GByteArray *index;      /* (owned) the index block's entries */
  GArray *index_restarts; /* (owned) (element-type guint32) */
  Block ended;            /* the last block, which isn't in the index yet */
  gboolean has_ended;
  gboolean is_finished;
};

MusterTableBuilder *
muster_table_builder_new (void)
{
  MusterTableBuilder *self = g_new0 (MusterTableBuilder, 1);
  self->restarts = g_array_new (FALSE, FALSE, sizeof (guint32));
  self->index = g_byte_array_new ();
  self->index_restarts = g_array_new (FALSE, FALSE, sizeof (guint32));
  return self;
}

void
muster_table_builder_free (MusterTableBuilder *self)
{
  if (self == NULL)
    return;
  g_free (self->data);
  g_free (self->key);
  g_array_unref (self->restarts);
  g_byte_array_unref (self->index);
  g_array_unref (self->index_restarts);
  g_free (self);
}

static void
grow (guint8 **data, gsize *capacity, gsize size)
{
  if (size <= *capacity)
    return;
  *capacity = MAX (size, *capacity + *capacity / 2);
  *data = g_realloc (*data, *capacity);
}

static void
append (MusterTableBuilder *self, const void *data, gsize size)
{
  grow (&self->data, &self->capacity, self->size + size);
  if (size > 0)
    memcpy (self->data + self->size, data, size);
  self->size += size;
}

static void
append_le32 (MusterTableBuilder *self, guint32 value)
{
  const guint32 stored = GUINT32_TO_LE (value);
  append (self, &stored, sizeof stored);
}

/* Ends the current block with its restarts, type and checksum. */
static Block
end_block (MusterTableBuilder *self, const GArray *restarts)
{
  if (restarts->len == 0)
    append_le32 (self, 0);
  for (guint i = 0; i < restarts->len; i++)
    append_le32 (self, g_array_index (restarts, guint32, i));
  append_le32 (self, MAX (restarts->len, 1));
  const Block block = {self->block, self->size - self->block};
  const guint8 uncompressed = 0;
  append (self, &uncompressed, 1);
  append_le32 (self, muster_crc32c_mask (
                         muster_crc32c_extend (0, self->data + block.offset, block.size + 1)));
  self->block = self->size;
  return block;
}

static gsize
shared_size (const MusterTableBuilder *self, const guint8 *key, gsize key_size)
{
  const gsize most = MIN (key_size, self->key_size);
  gsize n = 0;
  while (n < most && key[n] == self->key[n])
    n++;
  return n;
}

/* Shortens the block's last key: any text is valid that isn't less, and is less than what comes
 * next (nullable). It does so byte by byte, as LevelDB does. */
static void
shorten_key (MusterTableBuilder *self, const guint8 *next, gsize next_size)
{
  gsize n = 0;
  if (next != NULL)
    n = shared_size (self, next, next_size);
  else
    while (n < self->key_size && self->key[n] == 0xff)
      n++;
  if (n >= self->key_size || self->key[n] == 0xff ||
      (next != NULL && (n >= next_size || self->key[n] + 1 >= next[n])))
    return;
  self->key[n]++;
  self->key_size = n + 1;
}

/* Adds the last block to the index, under a key that isn't below its keys. */
static void
index_ended (MusterTableBuilder *self, const guint8 *next, gsize next_size)
{
  const Block block = self->ended;
  if (!self->has_ended)
    return;
  self->has_ended = FALSE;
  shorten_key (self, next, next_size);
  const guint32 restart = self->index->len;
  guint8 place[2 * MUSTER_PROTO_VARINT_MAX], head[3 * MUSTER_PROTO_VARINT_MAX];
  const guint8 *place_end =
      muster_proto_store_varint (muster_proto_store_varint (place, block.offset), block.size);
  const gsize place_size = (gsize)(place_end - place);
  const guint8 *head_end = muster_proto_store_varint (
      muster_proto_store_varint (muster_proto_store_varint (head, 0), self->key_size), place_size);
  g_array_append_val (self->index_restarts, restart);
  g_byte_array_append (self->index, head, (guint)(head_end - head));
  g_byte_array_append (self->index, self->key, (guint)self->key_size);
  g_byte_array_append (self->index, place, (guint)place_size);
}

static void
end_data_block (MusterTableBuilder *self)
{
  self->ended = end_block (self, self->restarts);
  self->has_ended = TRUE;
  g_array_set_size (self->restarts, 0);
  self->n_since = 0;
}

/* Returns the length of the prefix shared with the previous key; 0 at a restart. */
static gsize
begin_entry (MusterTableBuilder *self, const guint8 *key, gsize key_size)
{
  if (self->restarts->len > 0 && self->n_since < RESTART_INTERVAL)
    return shared_size (self, key, key_size);
  const guint32 restart = (guint32)(self->size - self->block);
  g_array_append_val (self->restarts, restart);
  self->n_since = 0;
  return 0;
}

void
muster_table_builder_add (MusterTableBuilder *self, const guint8 *key, gsize key_size,
                          const guint8 *value, gsize value_size)
{
  g_return_if_fail (!self->is_finished);
  /* muster_table_builder_finish () reports a table that is too large. */
  if (self->size > MUSTER_TABLE_MAX || key_size > MUSTER_TABLE_MAX || value_size > MUSTER_TABLE_MAX)
    self->size = MAX (self->size, (gsize)MUSTER_TABLE_MAX + 1);
  if (self->size > MUSTER_TABLE_MAX)
    return;
  index_ended (self, key, key_size);
  const gsize shared = begin_entry (self, key, key_size);
  grow (&self->data, &self->capacity,
        self->size + 3 * MUSTER_PROTO_VARINT_MAX + key_size + value_size);
  guint8 *at = muster_proto_store_varint (self->data + self->size, shared);
  at = muster_proto_store_varint (muster_proto_store_varint (at, key_size - shared), value_size);
  if (key_size > shared)
    memcpy (at, key + shared, key_size - shared);
  at += key_size - shared;
  if (value_size > 0)
    memcpy (at, value, value_size);
  self->size = (gsize)(at + value_size - self->data);
  grow (&self->key, &self->key_capacity, key_size);
  if (key_size > shared)
    memcpy (self->key + shared, key + shared, key_size - shared);
  self->key_size = key_size;
  self->n_since++;
  if (self->size - self->block + (self->restarts->len + 1) * sizeof (guint32) >= BLOCK_SIZE)
    end_data_block (self);
}

static void
append_footer (MusterTableBuilder *self, Block metaindex, Block index)
{
  guint8 footer[FOOTER_SIZE] = {0};
  guint8 *at = muster_proto_store_varint (muster_proto_store_varint (footer, metaindex.offset),
                                          metaindex.size);
  muster_proto_store_varint (muster_proto_store_varint (at, index.offset), index.size);
  memcpy (footer + FOOTER_SIZE - sizeof muster_table_magic, muster_table_magic,
          sizeof muster_table_magic);
  append (self, footer, sizeof footer);
}

GBytes *
muster_table_builder_finish (MusterTableBuilder *self, GError **error)
{
  g_return_val_if_fail (!self->is_finished, NULL);
  static const GArray no_restarts;
  self->is_finished = TRUE;
  if (self->restarts->len > 0 && self->size <= MUSTER_TABLE_MAX)
    end_data_block (self);
  if (self->size <= MUSTER_TABLE_MAX) {
    index_ended (self, NULL, 0);
    const Block metaindex = end_block (self, &no_restarts);
    append (self, self->index->data, self->index->len);
    append_footer (self, metaindex, end_block (self, self->index_restarts));
  }
  if (self->size <= MUSTER_TABLE_MAX)
    return g_bytes_new_take (g_steal_pointer (&self->data), self->size);
  muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "could not build the index: it is larger than 2 GiB");
  return NULL;
}
