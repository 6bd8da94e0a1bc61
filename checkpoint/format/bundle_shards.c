// SPDX-License-Identifier: Apache-2.0
/* Writes the data files of a checkpoint. Tensors are only noted first; when all are known, they
 * are distributed over files, space is reserved for everything, and one thread writes each file. If
 * anything fails, all files are removed. */
#include "checkpoint/format/bundle_shards_private.h"

#include "base/clock.h"
#include "base/crc32c_private.h"
#include "base/error.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/format/bundle_strings_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

/* Tensors of at least this size are aligned to 64 bytes. Readers use offsets, and the gap is
 * zeros. */
#define ALIGN_FROM 4096
#define ALIGNMENT  64
/* Bytes are summed and written in blocks that stay in the cache; every write starts at a
 * multiple. */
#define BLOCK_SIZE (256 * 1024)
/* Minimum size of a data file if several are written. */
#define SHARD_SIZE ((guint64)256 * 1024 * 1024)
#define SHARDS_MAX 8
/* Size of an index entry without its key, and room for the table around the entries. */
#define INDEX_ENTRY_SIZE 64
#define INDEX_SIZE       (64 * 1024)

typedef struct {
  MusterTensor *tensor; /* (owned) (nullable) NULL: it comes in parts */
  MusterBundleNext next;
  gpointer next_data;
  guint entry;
  guint64 size; /* bytes in the data file */
} Item;

/* One data file, and the thread that writes it. */
typedef struct {
  MusterShards *shards; /* (not owned) */
  gint32 number;
  MusterStorageFile *file; /* (owned) (nullable) NULL once it is closed */
  guint64 size;            /* what is to be written */
  gint64 offset;           /* of the next byte */
  guint8 *buffer;          /* (owned) a block that isn't full */
  gsize n_buffered;
  GError *error; /* (owned) (nullable) */
} Shard;

struct _MusterShards {
  MusterStorage *storage; /* (owned) */
  char *prefix;           /* (owned) */
  GArray *items;          /* (owned) (element-type Item) */
  GPtrArray
      *paths; /* (owned) (element-type utf8) files to remove on failure: by shard, and a NULL */
  MusterStorageFile *first;  /* (owned) (nullable) until the writing begins */
  MusterBundleIndex *index;  /* (not owned) while they are written */
  GCancellable *cancellable; /* (not owned) (nullable) likewise */
  Shard shards[SHARDS_MAX];
  gint32 n_shards;
  gint32 n_wanted;  /* 0: chosen by their size */
  gboolean places;  /* the store can't rename: they are written under their final names */
  gint32 n_in_name; /* then: n_shards, or more if that number is taken */
  gint has_failed;  /* atomic: one of the shards failed, and the others may stop */
};

static void
item_clear (gpointer data)
{
  g_clear_pointer (&((Item *)data)->tensor, muster_tensor_unref);
}

/* From now on the file is removed, unless it is kept. */
static void
add_path (MusterShards *self, const char *path)
{
  self->paths->pdata[self->paths->len - 1] = g_strdup (path);
  g_ptr_array_add (self->paths, NULL);
}

/* In a store that can't rename, a file appears when it is closed. A file of that name that is
 * there before is another writer's. */
static MusterStorageFile *
begin_file (MusterShards *self, gint32 shard, GError **error)
{
  g_autofree char *path = muster_bundle_data_path (self->prefix, shard, self->n_in_name);
  g_autofree char *temporary =
      self->places ? g_strdup (path) : muster_storage_temporary_name (path);
  MusterStorageFile *file = muster_storage_create (self->storage, temporary, error);
  if (file != NULL && !self->places)
    add_path (self, temporary);
  return file;
}

MusterShards *
muster_shards_new (MusterStorage *storage, const char *prefix, GError **error)
{
  MusterShards *self = g_new0 (MusterShards, 1);
  self->storage = g_object_ref (storage);
  self->prefix = g_strdup (prefix);
  self->items = g_array_new (FALSE, FALSE, sizeof (Item));
  g_array_set_clear_func (self->items, item_clear);
  self->paths = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (self->paths, NULL);
  self->n_in_name = 1;
  self->places = !muster_storage_can_rename (storage, prefix);
  if (self->places) {
    if (muster_storage_check_path (storage, "checkpoint", prefix, error))
      return self;
  } else {
    self->first = begin_file (self, 0, error);
    if (self->first != NULL)
      return self;
  }
  muster_shards_free (self);
  return NULL;
}

static void
remove_files (MusterShards *self)
{
  g_autoptr (MusterStorage) own = muster_storage_for_cleanup (self->storage);
  for (guint i = 0; i + 1 < self->paths->len; i++)
    (void)muster_storage_remove (own, self->paths->pdata[i], NULL);
  g_ptr_array_set_size (self->paths, 0);
  g_ptr_array_add (self->paths, NULL);
}

void
muster_shards_free (MusterShards *self)
{
  if (self == NULL)
    return;
  /* A file that is still open is abandoned. */
  if (self->first != NULL)
    muster_storage_abandon (self->storage, self->first);
  remove_files (self);
  g_array_unref (self->items);
  g_ptr_array_unref (self->paths);
  g_free (self->prefix);
  g_object_unref (self->storage);
  g_free (self);
}

void
muster_shards_note (MusterShards *self, guint entry, MusterTensor *tensor)
{
  const Item item = {.tensor = muster_tensor_ref (tensor), .entry = entry};
  g_array_append_val (self->items, item);
}

void
muster_shards_note_parts (MusterShards *self, guint entry, const MusterBundleParts *parts)
{
  const gint64 n = muster_shape_n_elements (parts->n_dims, parts->dims);
  const Item item = {.next = parts->next,
                     .next_data = parts->user_data,
                     .entry = entry,
                     .size = (guint64)n * muster_dtype_size (parts->dtype)};
  g_array_append_val (self->items, item);
}

void
muster_shards_note_all (MusterShards *self, MusterTensor *const *tensors, guint n)
{
  const guint len = self->items->len;
  g_array_set_size (self->items, len + n);
  Item *items = (Item *)self->items->data + len;
  for (guint i = 0; i < n; i++)
    items[i] = (Item){.tensor = muster_tensor_ref (tensors[i]), .entry = i};
}

void
muster_shards_set_number (MusterShards *self, guint n)
{
  self->n_wanted = (gint32)MIN (n, SHARDS_MAX);
}

const char *const *
muster_shards_paths (MusterShards *self)
{
  return (const char *const *)self->paths->pdata;
}

void
muster_shards_keep (MusterShards *self)
{
  g_ptr_array_set_size (self->paths, 0);
  g_ptr_array_add (self->paths, NULL);
}

/* Planning */

static guint64
stored_size (MusterTensor *tensor)
{
  if (muster_tensor_dtype (tensor) != MUSTER_STRING)
    return muster_tensor_n_bytes (tensor);
  guint64 bytes = sizeof (guint32); /* the checksum of the lengths */
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++) {
    const gsize size = muster_tensor_string (tensor, i).size;
    bytes += MAX ((g_bit_storage (size) + 6) / 7, 1) + size; /* its length is a varint */
  }
  return bytes;
}

/* Chooses one for each processor, but no small ones, and none only for the rest of one huge
 * tensor. */
static gint32
choose_n_shards (const MusterShards *self)
{
  if (self->n_wanted > 0)
    return self->n_wanted;
  guint64 total = 0, largest = 0;
  for (guint i = 0; i < self->items->len; i++) {
    const guint64 size = g_array_index (self->items, Item, i).size;
    total += size;
    largest = MAX (largest, size);
  }
  const guint64 n = MIN (total / MAX (largest, SHARD_SIZE), g_get_num_processors ());
  return (gint32)CLAMP (n, 1, SHARDS_MAX);
}

static int
compare_sizes (gconstpointer a, gconstpointer b, gpointer items)
{
  const guint left = *(const guint *)a, right = *(const guint *)b;
  const guint64 left_size = g_array_index ((GArray *)items, Item, left).size;
  const guint64 right_size = g_array_index ((GArray *)items, Item, right).size;
  return left_size != right_size ? (left_size < right_size) - (left_size > right_size)
                                 : (left > right) - (left < right);
}

static MusterBundleEntry *
entry_of (const MusterShards *self, const Item *item)
{
  return &g_array_index (self->index->entries, MusterIndexEntry, item->entry).entry;
}

/* Assigns the largest first, each to the smallest data file so far. */
static void
distribute (MusterShards *self)
{
  g_autofree guint *order = g_new (guint, MAX (self->items->len, 1));
  guint64 loads[SHARDS_MAX] = {0};
  for (guint i = 0; i < self->items->len; i++)
    order[i] = i;
  if (self->n_shards > 1)
    g_qsort_with_data (order, (gint)self->items->len, sizeof *order, compare_sizes, self->items);
  for (guint i = 0; i < self->items->len; i++) {
    const Item *item = &g_array_index (self->items, Item, order[i]);
    gint32 least = 0;
    for (gint32 k = 1; k < self->n_shards; k++)
      if (loads[k] < loads[least])
        least = k;
    loads[least] += item->size;
    entry_of (self, item)->shard = least;
  }
}

static void
plan (MusterShards *self)
{
  for (guint i = 0; i < self->items->len; i++) {
    Item *item = &g_array_index (self->items, Item, i);
    if (item->tensor != NULL)
      item->size = stored_size (item->tensor);
  }
  self->n_shards = choose_n_shards (self);
  distribute (self);
  for (guint i = 0; i < self->items->len; i++) {
    const Item *item = &g_array_index (self->items, Item, i);
    MusterBundleEntry *entry = entry_of (self, item);
    Shard *shard = &self->shards[entry->shard];
    if (item->size >= ALIGN_FROM && entry->dtype != MUSTER_STRING)
      shard->size += (ALIGNMENT - shard->size % ALIGNMENT) % ALIGNMENT;
    entry->offset = (gint64)shard->size;
    entry->size = (gint64)item->size;
    shard->size += item->size;
  }
}

/* Space */

static guint64
needed_bytes (const MusterShards *self)
{
  guint64 bytes = INDEX_SIZE;
  for (gint32 i = 0; i < self->n_shards; i++)
    bytes += self->shards[i].size;
  for (guint i = 0; i < self->index->entries->len; i++)
    bytes += INDEX_ENTRY_SIZE + g_array_index (self->index->entries, MusterIndexEntry, i).key_size;
  return bytes;
}

/* Describes a full store, after the written files were removed. Always returns FALSE. */
static gboolean
explain_full (const MusterShards *self, GError *why, GError **error)
{
  if (!muster_storage_failure_is_full (why)) {
    g_propagate_error (error, why);
    return FALSE;
  }
  g_autoptr (GError) own = why;
  g_autofree char *directory = g_path_get_dirname (self->prefix);
  g_autofree char *needed = muster_format_size (needed_bytes (self));
  guint64 free_bytes = G_MAXUINT64;
  (void)muster_storage_free_space (self->storage, directory, &free_bytes, NULL);
  g_autofree char *there = muster_format_size (free_bytes);
  const gboolean is_known = free_bytes != G_MAXUINT64;
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC,
               "not enough space in '%s': the checkpoint needs %s%s%s (%s)", directory, needed,
               is_known ? "; free: " : "", is_known ? there : "", own->message);
  return FALSE;
}

static gboolean
check_free_space (const MusterShards *self, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (self->prefix);
  guint64 free_bytes;
  if (!muster_storage_free_space (self->storage, directory, &free_bytes, error))
    return FALSE;
  if (free_bytes >= needed_bytes (self))
    return TRUE;
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "nothing was written");
  return FALSE;
}

/* Creates all data files and reserves their space before a byte is written. */
static gboolean
open_files (MusterShards *self, GError **error)
{
  if (!check_free_space (self, error))
    return FALSE;
  if (self->places)
    self->n_in_name =
        muster_bundle_free_number (self->storage, self->prefix, self->n_shards, error);
  if (self->n_in_name == 0)
    return FALSE;
  for (gint32 i = 0; i < self->n_shards; i++) {
    Shard *shard = &self->shards[i];
    shard->shards = self;
    shard->number = i;
    shard->file =
        i == 0 && !self->places ? g_steal_pointer (&self->first) : begin_file (self, i, error);
    if (shard->file == NULL ||
        !muster_storage_reserve (self->storage, shard->file, shard->size, error))
      return FALSE;
  }
  return TRUE;
}

/* Writing */

static gboolean
append (Shard *self, const void *data, gsize size, GError **error)
{
  return !g_cancellable_set_error_if_cancelled (self->shards->cancellable, error) &&
         muster_storage_append (self->shards->storage, self->file, data, size, error);
}

static gboolean
flush (Shard *self, GError **error)
{
  const gsize n = self->n_buffered;
  self->n_buffered = 0;
  return append (self, self->buffer, n, error);
}

/* Writes in blocks, and computes the checksum unless crc is NULL. Whole blocks aren't copied. */
static gboolean
put (Shard *self, const void *data, gsize size, guint32 *crc, GError **error)
{
  const guint8 *at = data;
  while (size > 0) {
    const gsize n = MIN (size, BLOCK_SIZE - self->n_buffered);
    gboolean is_put = TRUE;
    if (crc != NULL)
      *crc = muster_crc32c_extend (*crc, at, n);
    if (n == BLOCK_SIZE) {
      is_put = append (self, at, n, error);
    } else {
      memcpy (self->buffer + self->n_buffered, at, n);
      self->n_buffered += n;
      if (self->n_buffered == BLOCK_SIZE)
        is_put = flush (self, error);
    }
    if (!is_put || g_atomic_int_get (&self->shards->has_failed))
      return FALSE;
    at += n;
    size -= n;
    self->offset += (gint64)n;
  }
  return TRUE;
}

static gboolean
put_strings (Shard *self, MusterTensor *tensor, MusterBundleEntry *entry, GError **error)
{
  g_autoptr (GByteArray) head = g_byte_array_new ();
  entry->crc32c = muster_crc32c_mask (muster_strings_encode (tensor, head));
  if (!put (self, head->data, head->len, NULL, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++) {
    const MusterString text = muster_tensor_string (tensor, i);
    if (!put (self, text.data, text.size, NULL, error))
      return FALSE;
  }
  return TRUE;
}

/* Appends what comes next of a tensor. */
static gboolean
put_part (Shard *self, const Item *item, const MusterBundleEntry *entry, guint64 *left,
          guint32 *crc, GError **error)
{
  g_autoptr (MusterTensor) part = item->next (item->next_data, error);
  if (part == NULL)
    return FALSE;
  const guint64 size = muster_tensor_n_bytes (part);
  if (muster_tensor_dtype (part) != entry->dtype || size == 0 || size > *left)
    return muster_fail (error, MUSTER_ERROR_UNKNOWN,
                        "A part of %" G_GUINT64_FORMAT
                        " bytes doesn't fit: the tensor has changed its shape or type",
                        size);
  *left -= size;
  return put (self, muster_tensor_data (part), size, crc, error);
}

static gboolean
put_numbers (Shard *self, const Item *item, MusterBundleEntry *entry, GError **error)
{
  static const guint8 zeros[ALIGNMENT];
  guint32 crc = 0;
  guint64 left = item->tensor == NULL ? item->size : 0;
  if (!put (self, zeros, (gsize)(entry->offset - self->offset), NULL, error) ||
      (item->tensor != NULL &&
       !put (self, muster_tensor_data (item->tensor), (gsize)entry->size, &crc, error)))
    return FALSE;
  while (left > 0)
    if (!put_part (self, item, entry, &left, &crc, error))
      return FALSE;
  entry->crc32c = muster_crc32c_mask (crc);
  return TRUE;
}

static gboolean
write_items (Shard *self, GError **error)
{
  const MusterShards *shards = self->shards;
  for (guint i = 0; i < shards->items->len; i++) {
    const Item *item = &g_array_index (shards->items, Item, i);
    MusterBundleEntry *entry = entry_of (shards, item);
    if (entry->shard != self->number)
      continue;
    if (!(entry->dtype == MUSTER_STRING ? put_strings (self, item->tensor, entry, error)
                                        : put_numbers (self, item, entry, error)))
      return FALSE;
  }
  return flush (self, error) && muster_storage_sync (shards->storage, self->file, error);
}

static gpointer
write_shard (gpointer data)
{
  Shard *self = data;
  self->buffer = g_malloc (BLOCK_SIZE);
  if (!write_items (self, &self->error))
    g_atomic_int_set (&self->shards->has_failed, TRUE);
  g_free (self->buffer);
  return NULL;
}

/* Starts a thread for each data file; the caller's writes the first. */
static void
write_shards (MusterShards *self)
{
  GThread *threads[SHARDS_MAX] = {NULL};
  for (gint32 i = 1; i < self->n_shards; i++)
    threads[i] = g_thread_try_new ("muster-shard", write_shard, &self->shards[i], NULL);
  write_shard (&self->shards[0]);
  for (gint32 i = 1; i < self->n_shards; i++) {
    if (threads[i] != NULL)
      g_thread_join (threads[i]);
    else
      write_shard (&self->shards[i]);
  }
}

/* TRUE once it is closed; otherwise nobody sees it. */
static gboolean
close_file (MusterShards *self, Shard *shard, GError **error)
{
  MusterStorageFile *file = g_steal_pointer (&shard->file);
  if (self->has_failed) {
    muster_storage_abandon (self->storage, file);
    return FALSE;
  }
  if (!muster_storage_close (self->storage, file, error))
    return FALSE;
  if (self->places) {
    g_autofree char *path = muster_bundle_data_path (self->prefix, shard->number, self->n_in_name);
    add_path (self, path);
  }
  return TRUE;
}

/* Closes open files; *why is set to the first failure, unless it is set. */
static gboolean
close_files (MusterShards *self, GError **why)
{
  for (gint32 i = 0; i < self->n_shards; i++) {
    Shard *shard = &self->shards[i];
    if (shard->error != NULL && *why == NULL)
      *why = g_steal_pointer (&shard->error);
    g_clear_error (&shard->error);
    if (shard->file != NULL && !close_file (self, shard, self->has_failed ? NULL : why))
      self->has_failed = TRUE;
  }
  return !self->has_failed;
}

/* Adds empty files up to the number in the names. */
static gboolean
fill_up (MusterShards *self, GError **error)
{
  for (gint32 i = self->n_shards; self->places && i < self->n_in_name; i++) {
    g_autofree char *path = muster_bundle_data_path (self->prefix, i, self->n_in_name);
    if (!muster_storage_write_synced (self->storage, path, NULL, 0, error))
      return FALSE;
    add_path (self, path);
  }
  return TRUE;
}

/* Explains that two writers write the same checkpoint. ABORTED would mean that a master lost its
 * session. */
static void
explain_race (const MusterShards *self, GError **why)
{
  if (!muster_error_is (*why, MUSTER_ERROR_ABORTED))
    return;
  g_autoptr (GError) own = g_steal_pointer (why);
  muster_fail (why, MUSTER_ERROR_ALREADY_EXISTS,
               "another process is writing the checkpoint '%s' as well (%s); save again, from one "
               "process",
               self->prefix, own->message);
}

gboolean
muster_shards_write (MusterShards *self, MusterBundleIndex *index, GCancellable *cancellable,
                     GError **error)
{
  GError *why = NULL;
  self->index = index;
  self->cancellable = cancellable;
  plan (self);
  if (open_files (self, &why))
    write_shards (self);
  else
    self->has_failed = TRUE;
  const gboolean is_written = close_files (self, &why) && fill_up (self, &why);
  g_array_set_size (self->items, 0); /* drops the references to the tensors */
  if (is_written)
    return TRUE;
  remove_files (self);
  explain_race (self, &why);
  return explain_full (self, why, error);
}
