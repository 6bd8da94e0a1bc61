// SPDX-License-Identifier: Apache-2.0
#include "bundle/leveldb_table.h"

#include "base/error.h"
#include "base/protowire.h"
#include "bundle/crc32c.h"

#include <string.h>

#define FOOTER_SIZE  48
#define TRAILER_SIZE 5 /* a block's type and checksum */
#define MAGIC        G_GUINT64_CONSTANT (0xdb4775248b80fb57)

/* Where a block lies, without its trailer. */
typedef struct {
  guint64 offset;
  guint64 size;
} Block;

static gboolean
fail (GError **error, const char *why)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "not a sound table: %s", why);
  return FALSE;
}

static guint32
read_le32 (const guint8 *at)
{
  guint32 value;
  memcpy (&value, at, sizeof value);
  return GUINT32_FROM_LE (value);
}

static gboolean
read_block_place (MusterProtoReader *reader, Block *block)
{
  return muster_proto_read_varint (reader, &block->offset) &&
         muster_proto_read_varint (reader, &block->size);
}

/* Place, trailer and checksum; blocks_end is where the footer starts. */
static gboolean
check_block (const guint8 *data, gsize blocks_end, Block block, GError **error)
{
  if (block.offset > blocks_end || blocks_end - block.offset < TRAILER_SIZE ||
      block.size > blocks_end - block.offset - TRAILER_SIZE)
    return fail (error, "a block lies outside the file");
  const guint8 *contents = data + block.offset;
  const guint32 crc = muster_crc32c_extend (0, contents, block.size + 1);
  if (muster_crc32c_unmask (read_le32 (contents + block.size + 1)) != crc)
    return fail (error, "a block's checksum is wrong");
  if (contents[block.size] == 0)
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
               "the table is compressed (type %d), which TensorFlow doesn't write and muster "
               "doesn't read",
               contents[block.size]);
  return FALSE;
}

/* The entries of a block: what stands before its list of restarts. */
static gboolean
entries_of (const guint8 *contents, gsize size, MusterProtoReader *entries, GError **error)
{
  if (size < 2 * sizeof (guint32))
    return fail (error, "a block is too short");
  const guint64 n_restarts = read_le32 (contents + size - sizeof (guint32));
  const guint64 restarts_size = (n_restarts + 1) * sizeof (guint32);
  if (n_restarts == 0 || restarts_size > size || read_le32 (contents + size - restarts_size) != 0)
    return fail (error, "a block's restarts are wrong");
  *entries = muster_proto_reader (contents, size - restarts_size);
  return TRUE;
}

/* Steps over one entry: the bytes shared with the key before it, the key's own, the value's. */
static gboolean
next_entry (MusterProtoReader *entries, guint64 *key_size, MusterProtoReader *value, GError **error)
{
  guint64 shared, own, value_size;
  if (!muster_proto_read_varint (entries, &shared) || !muster_proto_read_varint (entries, &own) ||
      !muster_proto_read_varint (entries, &value_size))
    return fail (error, "an entry is cut off");
  const guint64 left = (guint64)(entries->end - entries->at);
  if (shared > *key_size || own > left || value_size > left - own)
    return fail (error, "an entry leaves its block");
  *key_size = shared + own;
  *value = muster_proto_reader (entries->at + own, value_size);
  entries->at += own + value_size;
  return TRUE;
}

static gboolean
check_data_block (const guint8 *data, gsize blocks_end, Block block, GError **error)
{
  MusterProtoReader entries, value;
  guint64 key_size = 0;
  if (!check_block (data, blocks_end, block, error) ||
      !entries_of (data + block.offset, block.size, &entries, error))
    return FALSE;
  while (!muster_proto_at_end (&entries))
    if (!next_entry (&entries, &key_size, &value, error))
      return FALSE;
  return TRUE;
}

/* The index block names the data blocks, one after the other: so each is walked once. *end is where
 * the last one ends; *is_tight tells whether they follow one another from the start. */
static gboolean
check_index_block (const guint8 *data, gsize blocks_end, Block index, guint64 *end,
                   gboolean *is_tight, GError **error)
{
  MusterProtoReader entries, value;
  guint64 key_size = 0;
  *end = 0;
  *is_tight = TRUE;
  if (!check_block (data, blocks_end, index, error) ||
      !entries_of (data + index.offset, index.size, &entries, error))
    return FALSE;
  while (!muster_proto_at_end (&entries)) {
    Block block;
    if (!next_entry (&entries, &key_size, &value, error))
      return FALSE;
    if (!read_block_place (&value, &block) || block.offset < *end)
      return fail (error, "a block is out of place");
    if (!check_data_block (data, blocks_end, block, error))
      return FALSE;
    *is_tight = *is_tight && block.offset == *end;
    *end = block.offset + block.size + TRAILER_SIZE;
  }
  return TRUE;
}

/* The footer written again, from what was read out of it: every bit of it means something then. */
static gboolean
is_plain_footer (const guint8 *footer, Block metaindex, Block index)
{
  g_autoptr (GByteArray) again = g_byte_array_new ();
  muster_proto_put_varint (again, metaindex.offset);
  muster_proto_put_varint (again, metaindex.size);
  muster_proto_put_varint (again, index.offset);
  muster_proto_put_varint (again, index.size);
  while (again->len < FOOTER_SIZE - 8)
    g_byte_array_append (again, (const guint8 *)"", 1);
  return memcmp (footer, again->data, FOOTER_SIZE - 8) == 0;
}

/* What a reader has no need of: the block behind the data, and that nothing lies between blocks. */
static const char *
find_flaw (const guint8 *data, gsize blocks_end, Block metaindex, Block index, guint64 data_end,
           gboolean is_tight)
{
  if (!is_plain_footer (data + blocks_end, metaindex, index))
    return "its footer is damaged";
  if (!is_tight || metaindex.offset != data_end ||
      index.offset != metaindex.offset + metaindex.size + TRAILER_SIZE ||
      blocks_end != index.offset + index.size + TRAILER_SIZE)
    return "it has bytes that belong to none of its blocks";
  if (!check_block (data, blocks_end, metaindex, NULL))
    return "the checksum of its metaindex block is wrong";
  return NULL;
}

gboolean
muster_table_check (const guint8 *data, gsize size, const char **flaw, GError **error)
{
  if (size < FOOTER_SIZE)
    return fail (error, "it is too short");
  if (size > MUSTER_TABLE_MAX)
    return fail (error, "it is larger than 2 GiB");
  const gsize blocks_end = size - FOOTER_SIZE;
  const guint64 magic = read_le32 (data + size - 8) | (guint64)read_le32 (data + size - 4) << 32;
  if (magic != MAGIC)
    return fail (error, "it doesn't end as a table does");
  MusterProtoReader footer = muster_proto_reader (data + blocks_end, FOOTER_SIZE - 8);
  Block metaindex, index;
  guint64 data_end;
  gboolean is_tight;
  if (!read_block_place (&footer, &metaindex) || !read_block_place (&footer, &index))
    return fail (error, "its footer is wrong");
  if (!check_index_block (data, blocks_end, index, &data_end, &is_tight, error))
    return FALSE;
  if (flaw != NULL)
    *flaw = find_flaw (data, blocks_end, metaindex, index, data_end, is_tight);
  return TRUE;
}
