// SPDX-License-Identifier: Apache-2.0
/* Checks and walks a table in LevelDB's format. Everything is checked before an entry is passed
 * on: the footer, each block's place, checksum and lengths. A correct checksum alone doesn't ensure
 * that a length or offset stays inside the table. */
#include "checkpoint/format/leveldb_table_private.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/protowire_private.h"

#include <snappy-c.h>
#include <string.h>

#define FOOTER_SIZE  48
#define TRAILER_SIZE 5 /* a block's type and checksum */

/* The place of a block, without its trailer. */
typedef struct {
  guint64 offset;
  guint64 size;
} Block;

static gboolean
fail_table (GError **error, const char *why)
{
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "invalid table: %s", why);
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

/* The contents of a block: the file's bytes, or what they decompress to. */
typedef struct {
  const guint8 *data;
  gsize size;
  guint8 *buffer; /* (owned) (nullable) for decompressed blocks, one after the other */
  gsize capacity;
} Contents;

static void
contents_clear (Contents *self)
{
  g_free (self->buffer);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Contents, contents_clear)

static gboolean
reserve (Contents *self, gsize size, GError **error)
{
  if (size <= self->capacity)
    return TRUE;
  g_free (self->buffer);
  self->buffer = g_try_malloc (size);
  self->capacity = self->buffer != NULL ? size : 0;
  return self->buffer != NULL ||
         muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "not enough memory for a block of %" G_GSIZE_FORMAT " bytes", size);
}

/* Decompresses a block. It states the length of its contents. Snappy's longest copy, of 64
 * bytes, takes 3 bytes, so a block that claims more than that ratio is refused, and memory is
 * bounded by the file's size. */
static gboolean
decompress (Contents *self, const guint8 *data, gsize size, GError **error)
{
  enum { COPY_MAX = 64, COPY_MIN_SIZE = 3 };
  size_t length;
  if (snappy_uncompressed_length ((const char *)data, size, &length) != SNAPPY_OK ||
      length > size / COPY_MIN_SIZE * COPY_MAX + COPY_MAX || length > MUSTER_TABLE_MAX)
    return fail_table (error, "the length of a compressed block is invalid");
  if (!reserve (self, MAX (length, 1), error))
    return FALSE;
  if (snappy_uncompress ((const char *)data, size, (char *)self->buffer, &length) != SNAPPY_OK)
    return fail_table (error, "a compressed block is damaged");
  self->data = self->buffer;
  self->size = length;
  return TRUE;
}

static gboolean
contents_of (Contents *self, const guint8 *data, Block block, GError **error)
{
  enum { UNCOMPRESSED = 0, SNAPPY = 1 };
  const guint8 *stored = data + block.offset;
  if (stored[block.size] == SNAPPY)
    return decompress (self, stored, block.size, error);
  self->data = stored;
  self->size = block.size;
  return stored[block.size] == UNCOMPRESSED ||
         muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "a block is compressed by the unknown method %d", stored[block.size]);
}

/* Opens a block after checking place, trailer and checksum; blocks_end is where the footer
 * starts. */
static gboolean
open_block (Contents *self, const guint8 *data, gsize blocks_end, Block block, GError **error)
{
  if (block.offset > blocks_end || blocks_end - block.offset < TRAILER_SIZE ||
      block.size > blocks_end - block.offset - TRAILER_SIZE)
    return fail_table (error, "a block extends past the end of the file");
  const guint8 *contents = data + block.offset;
  const guint32 crc = muster_crc32c_extend (0, contents, block.size + 1);
  if (muster_crc32c_unmask (read_le32 (contents + block.size + 1)) != crc)
    return fail_table (error, "a block's checksum doesn't match");
  return contents_of (self, data, block, error);
}

/* Returns the entries of a block, which its list of restarts follows. */
static gboolean
entries_of (const Contents *block, MusterProtoReader *entries, GError **error)
{
  const guint8 *contents = block->data;
  const gsize size = block->size;
  if (size < 2 * sizeof (guint32))
    return fail_table (error, "a block is too short");
  const guint64 n_restarts = read_le32 (contents + size - sizeof (guint32));
  const guint64 restarts_size = (n_restarts + 1) * sizeof (guint32);
  if (n_restarts == 0 || restarts_size > size || read_le32 (contents + size - restarts_size) != 0)
    return fail_table (error, "a block's restart points are invalid");
  *entries = muster_proto_reader (contents, size - restarts_size);
  return TRUE;
}

/* One entry: the number of bytes that its key shares with the one before, its own bytes, its
 * value. */
typedef struct {
  guint64 shared, own;
  const guint8 *key; /* its own bytes */
  MusterProtoReader value;
} Entry;

/* Steps over an entry; *key_size is the size of the last key, then of its own. */
static inline gboolean
next_entry (MusterProtoReader *entries, guint64 *key_size, Entry *entry, GError **error)
{
  guint64 value_size;
  if (!muster_proto_read_varint (entries, &entry->shared) ||
      !muster_proto_read_varint (entries, &entry->own) ||
      !muster_proto_read_varint (entries, &value_size))
    return fail_table (error, "an entry is truncated");
  const guint64 left = (guint64)(entries->end - entries->at);
  if (entry->shared > *key_size || entry->own > left || value_size > left - entry->own)
    return fail_table (error, "an entry extends past its block");
  *key_size = entry->shared + entry->own;
  entry->key = entries->at;
  entry->value = muster_proto_reader (entries->at + entry->own, value_size);
  entries->at += entry->own + value_size;
  return TRUE;
}

static gboolean
check_data_block (Contents *contents, const guint8 *data, gsize blocks_end, Block block,
                  GError **error)
{
  MusterProtoReader entries;
  Entry entry;
  guint64 key_size = 0;
  if (!open_block (contents, data, blocks_end, block, error) ||
      !entries_of (contents, &entries, error))
    return FALSE;
  while (!muster_proto_at_end (&entries))
    if (!next_entry (&entries, &key_size, &entry, error))
      return FALSE;
  return TRUE;
}

/* Checks the data blocks that the index block lists, in order and each once. *end is the end of
 * the last; *is_tight is TRUE if they are contiguous from the start. */
static gboolean
check_index_block (const guint8 *data, gsize blocks_end, Block index, guint64 *end,
                   gboolean *is_tight, GError **error)
{
  MusterProtoReader entries;
  Entry entry;
  g_auto (Contents) contents = {0};
  g_auto (Contents) data_contents = {0};
  guint64 key_size = 0;
  *end = 0;
  *is_tight = TRUE;
  if (!open_block (&contents, data, blocks_end, index, error) ||
      !entries_of (&contents, &entries, error))
    return FALSE;
  while (!muster_proto_at_end (&entries)) {
    Block block;
    if (!next_entry (&entries, &key_size, &entry, error))
      return FALSE;
    if (!read_block_place (&entry.value, &block) || block.offset < *end)
      return fail_table (error, "a block is out of place");
    if (!check_data_block (&data_contents, data, blocks_end, block, error))
      return FALSE;
    *is_tight = *is_tight && block.offset == *end;
    *end = block.offset + block.size + TRAILER_SIZE;
  }
  return TRUE;
}

/* Compares the footer with its canonical form, so that every bit of it is checked. */
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

/* Checks what readers don't use: the block after the data, and that there are no gaps between
 * blocks. */
static const char *
find_flaw (const guint8 *data, gsize blocks_end, Block metaindex, Block index, guint64 data_end,
           gboolean is_tight)
{
  g_auto (Contents) contents = {0};
  if (!is_plain_footer (data + blocks_end, metaindex, index))
    return "its footer is damaged";
  if (!is_tight || metaindex.offset != data_end ||
      index.offset != metaindex.offset + metaindex.size + TRAILER_SIZE ||
      blocks_end != index.offset + index.size + TRAILER_SIZE)
    return "it has bytes outside its blocks";
  if (!open_block (&contents, data, blocks_end, metaindex, NULL))
    return "the checksum of its metaindex block doesn't match";
  return NULL;
}

/* The footer of a checked table. */
typedef struct {
  Block metaindex, index;
} Footer;

static gboolean
read_footer (const guint8 *data, gsize blocks_end, Footer *footer, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (data + blocks_end, FOOTER_SIZE - 8);
  return (read_block_place (&reader, &footer->metaindex) &&
          read_block_place (&reader, &footer->index)) ||
         fail_table (error, "its footer is invalid");
}

/* Names what often lies in place of a table, as in a clone without its large files or from a
 * proxy. */
static const char *
name_other_content (const guint8 *data, gsize size)
{
  static const struct {
    const char *start, *flaw;
  } contents[] = {
      {"version https://git-lfs", "it is a Git LFS pointer; `git lfs pull` fetches the file"},
      {"<!DOCTYPE html", "it is an HTML page, not a table"},
      {"<!doctype html", "it is an HTML page, not a table"},
      {"<html", "it is an HTML page, not a table"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (contents); i++) {
    const gsize n = strlen (contents[i].start);
    if (size >= n && memcmp (data, contents[i].start, n) == 0)
      return contents[i].flaw;
  }
  return NULL;
}

/* Checks all blocks before they are read. */
static gboolean
check_table (const guint8 *data, gsize size, const char **flaw, GError **error)
{
  const char *other = name_other_content (data, size);
  if (other != NULL)
    return fail_table (error, other);
  if (size < FOOTER_SIZE)
    return fail_table (error, "it is too short");
  if (size > MUSTER_TABLE_MAX)
    return fail_table (error, "it is larger than 2 GiB");
  const gsize blocks_end = size - FOOTER_SIZE;
  if (memcmp (data + size - sizeof muster_table_magic, muster_table_magic,
              sizeof muster_table_magic) != 0)
    return fail_table (error, "its magic number is wrong");
  Footer footer;
  guint64 data_end;
  gboolean is_tight;
  if (!read_footer (data, blocks_end, &footer, error) ||
      !check_index_block (data, blocks_end, footer.index, &data_end, &is_tight, error))
    return FALSE;
  if (flaw != NULL)
    *flaw = find_flaw (data, blocks_end, footer.metaindex, footer.index, data_end, is_tight);
  return TRUE;
}

/* A walk over a checked table. */
typedef struct {
  MusterTableFunc func;
  gpointer user_data;
  guint8 *key; /* (owned) the last one */
  gsize capacity;
} Walk;

static void
take_key (Walk *self, const Entry *entry, gsize key_size)
{
  if (key_size > self->capacity) {
    self->capacity = MAX (key_size, 2 * self->capacity);
    self->key = g_realloc (self->key, self->capacity);
  }
  if (entry->own > 0)
    memcpy (self->key + entry->shared, entry->key, entry->own);
}

static gboolean
walk_block (Walk *self, const Contents *contents, GError **error)
{
  MusterProtoReader entries;
  Entry entry;
  guint64 key_size = 0;
  if (!entries_of (contents, &entries, error))
    return FALSE;
  while (!muster_proto_at_end (&entries)) {
    if (!next_entry (&entries, &key_size, &entry, error))
      return FALSE;
    take_key (self, &entry, key_size);
    if (!self->func (self->key, key_size, entry.value.at, (gsize)(entry.value.end - entry.value.at),
                     self->user_data, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
walk_blocks (Walk *self, const guint8 *data, Block index, GError **error)
{
  MusterProtoReader entries;
  Entry entry;
  Block block;
  g_auto (Contents) contents = {0};
  g_auto (Contents) data_contents = {0};
  guint64 key_size = 0;
  if (!contents_of (&contents, data, index, error) || !entries_of (&contents, &entries, error))
    return FALSE;
  while (!muster_proto_at_end (&entries))
    if (!next_entry (&entries, &key_size, &entry, error) ||
        !read_block_place (&entry.value, &block) ||
        !contents_of (&data_contents, data, block, error) ||
        !walk_block (self, &data_contents, error))
      return FALSE;
  return TRUE;
}

gboolean
muster_table_foreach (GBytes *table, MusterTableFunc func, gpointer user_data, const char **flaw,
                      GError **error)
{
  Walk walk = {.func = func, .user_data = user_data};
  Footer footer;
  gsize size;
  const guint8 *data = g_bytes_get_data (table, &size);
  if (!check_table (data, size, flaw, error) ||
      !read_footer (data, size - FOOTER_SIZE, &footer, error))
    return FALSE;
  const gboolean is_walked = walk_blocks (&walk, data, footer.index, error);
  g_free (walk.key);
  return is_walked;
}
