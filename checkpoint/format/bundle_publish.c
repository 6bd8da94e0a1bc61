// SPDX-License-Identifier: Apache-2.0
/* Publishes a checkpoint by renames: the data files first, under a number of shards that the old
 * checkpoint doesn't have, the index last. That one rename makes the new checkpoint current, so a
 * crash leaves the old or the new one whole (docs/decisions/0009). */
#include "checkpoint/format/bundle_publish_private.h"

#include "base/error.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

/* A checkpoint that is being published. */
typedef struct {
  MusterStorage *storage;
  MusterBundleIndex *index; /* (nullable) if it isn't needed, or from has it */
  const char *from;         /* (nullable) a prefix */
  const char *const *data;  /* where the data files lie now */
  gint32 n_data;
  const char *to;
  char *directory;     /* (owned) of to */
  gint32 n_shards;     /* n_data, plus empty ones to differ from the old checkpoint */
  gboolean replaces;   /* a checkpoint to exists */
  gboolean is_passing; /* to is published again; then the directory is synced */
  GPtrArray *old;      /* (owned) (element-type utf8) data files that have no index afterwards */
  char *old_index;     /* (owned) to's index */
  char *new_index;     /* (owned) (nullable) the durable index that becomes to's */
  gboolean owns_index; /* new_index was written here */
  gint32 n_placed;     /* data files that have their new name */
  gboolean is_published;
} Publication;

static void
publication_clear (Publication *self)
{
  g_free (self->directory);
  g_free (self->old_index);
  g_free (self->new_index);
  g_clear_pointer (&self->old, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Publication, publication_clear)

static gboolean
find_old (Publication *self, GError **error)
{
  MusterStorageInfo info;
  g_autoptr (GError) why = NULL;
  self->replaces = muster_storage_stat (self->storage, self->old_index, &info, &why);
  if (self->replaces || muster_storage_failure_is_absent (why))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

/* Chooses a number of shards that no data file of the old checkpoint has in its name, so that none
 * is overwritten. Data files without an index belong to no checkpoint. */
static gboolean
choose_shards (Publication *self, GError **error)
{
  g_autofree char *base = g_path_get_basename (self->to);
  g_autoptr (GHashTable) taken = g_hash_table_new (NULL, NULL);
  g_auto (GStrv) names = muster_storage_list (self->storage, self->directory, error);
  if (names == NULL)
    return FALSE;
  for (gsize i = 0; self->replaces && names[i] != NULL; i++)
    g_hash_table_add (taken, GINT_TO_POINTER (muster_bundle_shards_of (names[i], base)));
  self->n_shards = self->n_data;
  while (g_hash_table_contains (taken, GINT_TO_POINTER (self->n_shards)))
    self->n_shards++;
  for (gsize i = 0; names[i] != NULL; i++) {
    const gint32 n_shards = muster_bundle_shards_of (names[i], base);
    if (n_shards > 0 && n_shards != self->n_shards)
      g_ptr_array_add (self->old, g_build_filename (self->directory, names[i], NULL));
  }
  return TRUE;
}

static char *
shard_path (const Publication *self, gint32 shard)
{
  return muster_bundle_data_path (self->to, shard, self->n_shards);
}

static gboolean
sync_names (const Publication *self, GError **error)
{
  return self->is_passing || muster_storage_sync_directory (self->storage, self->directory, error);
}

static gboolean
place_data (Publication *self, GError **error)
{
  for (; self->n_placed < self->n_shards; self->n_placed++) {
    const gint32 i = self->n_placed;
    g_autofree char *path = shard_path (self, i);
    if (!(i < self->n_data ? muster_storage_rename (self->storage, self->data[i], path, error)
                           : muster_storage_write_synced (self->storage, path, NULL, 0, error)))
      return FALSE;
  }
  /* Sync the names too, before an index refers to them. */
  return sync_names (self, error);
}

/* Undoes the renames after a failure. */
static void
take_back (Publication *self)
{
  for (gint32 i = 0; i < self->n_placed; i++) {
    g_autofree char *path = shard_path (self, i);
    if (i < self->n_data)
      (void)muster_storage_rename (self->storage, path, self->data[i], NULL);
    else
      muster_storage_remove_quietly (self->storage, path);
  }
  if (self->owns_index)
    muster_storage_remove_quietly (self->storage, self->new_index);
}

static gboolean
write_index (Publication *self, GError **error)
{
  g_autoptr (MusterBundleIndex) loaded =
      self->index == NULL ? muster_bundle_index_load (self->storage, self->from, error) : NULL;
  MusterBundleIndex *from = self->index != NULL ? self->index : loaded;
  if (from == NULL)
    return FALSE;
  from->n_shards = self->n_shards;
  g_autoptr (GBytes) index = muster_bundle_index_save (from, error);
  gsize size;
  const void *data = index != NULL ? g_bytes_get_data (index, &size) : NULL;
  g_autofree char *path = muster_storage_temporary_name (self->old_index);
  if (index == NULL || !muster_storage_write_synced (self->storage, path, data, size, error))
    return FALSE;
  g_free (self->new_index);
  self->new_index = g_steal_pointer (&path);
  self->owns_index = TRUE;
  return TRUE;
}

/* One rename makes the new index current. */
static gboolean
replace_index (Publication *self, GError **error)
{
  /* Held until the old data is removed, so that a reader of the old checkpoint keeps its data.
   * */
  MusterStorageLock *lock = self->replaces ? muster_storage_lock (self->storage, self->old_index,
                                                                  MUSTER_LOCK_UNUSED, NULL)
                                           : NULL;
  self->is_published =
      muster_storage_rename (self->storage, self->new_index, self->old_index, error);
  const gboolean is_durable = self->is_published && sync_names (self, error);
  if (is_durable && (lock != NULL || !self->replaces))
    for (guint i = 0; i < self->old->len; i++)
      muster_storage_remove_quietly (self->storage, self->old->pdata[i]);
  muster_storage_unlock (self->storage, lock);
  return is_durable;
}

static gboolean
publish (Publication *self, GError **error)
{
  self->old_index = muster_bundle_index_path (self->to);
  self->directory = g_path_get_dirname (self->to);
  g_autofree char *name = g_path_get_basename (self->to);
  self->is_passing = g_str_has_prefix (name, MUSTER_SAVING_PREFIX);
  self->old = g_ptr_array_new_with_free_func (g_free);
  while (self->data[self->n_data] != NULL)
    self->n_data++;
  if (!find_old (self, error) || !choose_shards (self, error))
    return FALSE;
  const gboolean is_index_there = self->new_index != NULL && self->n_shards == self->n_data;
  if ((is_index_there || write_index (self, error)) && place_data (self, error) &&
      replace_index (self, error))
    return TRUE;
  if (!self->is_published)
    take_back (self);
  return FALSE;
}

gboolean
muster_bundle_publish_files (MusterStorage *storage, MusterBundleIndex *index,
                             const char *const *data, const char *to, gboolean *is_published,
                             GError **error)
{
  if (!muster_storage_can_rename (storage, to)) {
    MusterBundlePlacing placing = {.index = index, .data = data, .to = to};
    g_autoptr (GError) why = NULL;
    const gboolean is_placed = muster_bundle_place (storage, &placing, &why);
    *is_published = placing.is_published || placing.is_unsure;
    if (muster_error_is (
            why, MUSTER_ERROR_ABORTED)) /* the code by which a master reports a lost session */
      return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                          "another process has written the checkpoint '%s' meanwhile (%s)", to,
                          why->message);
    if (why != NULL)
      g_propagate_error (error, g_steal_pointer (&why));
    return is_placed;
  }
  g_auto (Publication) self = {.storage = storage, .index = index, .data = data, .to = to};
  const gboolean is_durable = publish (&self, error);
  *is_published = self.is_published;
  return is_durable;
}

static gboolean
check_length (MusterStorage *storage, const char *path, guint64 least, GError **error)
{
  MusterStorageInfo info;
  if (!muster_storage_stat (storage, path, &info, error))
    return FALSE;
  if (info.size >= least)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "'%s' has %" G_GUINT64_FORMAT " bytes, but its index says %" G_GUINT64_FORMAT
                      ": it is truncated",
                      path, info.size, least);
}

char **
muster_bundle_sync_data (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autoptr (GArray) sizes = muster_bundle_index_measure (storage, prefix, error);
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  for (guint i = 0; sizes != NULL && i < sizes->len; i++) {
    g_autofree char *path = muster_bundle_data_path (prefix, (gint32)i, (gint32)sizes->len);
    if (!check_length (storage, path, g_array_index (sizes, guint64, i), error))
      return NULL;
    g_strv_builder_add (builder, path);
  }
  g_auto (GStrv) paths = sizes != NULL ? g_strv_builder_end (builder) : NULL;
  for (gsize i = 0; paths != NULL && paths[i] != NULL; i++)
    if (!muster_storage_sync_directory (storage, paths[i], error))
      return NULL;
  return g_steal_pointer (&paths);
}

/* Returns the paths of data files, unchecked. */
static char **
list_data (MusterStorage *storage, const char *prefix, GError **error)
{
  gint32 n_shards;
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  if (!muster_bundle_index_count_shards (storage, prefix, &n_shards, error))
    return NULL;
  for (gint32 i = 0; i < n_shards; i++) {
    g_autofree char *path = muster_bundle_data_path (prefix, i, n_shards);
    g_strv_builder_add (builder, path);
  }
  return g_strv_builder_end (builder);
}

static gboolean
rename_prefix (MusterStorage *storage, const MusterBundlePublishing *what, GError **error)
{
  const char *from = what->from;
  g_auto (GStrv) data = what->is_own ? list_data (storage, from, error)
                                     : muster_bundle_sync_data (storage, from, error);
  g_autofree char *path = muster_bundle_index_path (from);
  if (data == NULL || (!what->is_own && !muster_storage_sync_directory (storage, path, error)))
    return FALSE;
  g_auto (Publication) self = {.storage = storage,
                               .from = from,
                               .data = (const char *const *)data,
                               .to = what->to,
                               .new_index = g_strdup (path)};
  const gboolean is_durable = publish (&self, error);
  if (self.is_published && self.owns_index)
    muster_storage_remove_quietly (storage, path); /* the copy is complete */
  return is_durable;
}

/* Places the files, which another process may have removed as left over. */
static gboolean
place_prefix (MusterStorage *storage, MusterBundlePublishing *what, GError **error)
{
  g_auto (GStrv) data = muster_bundle_sync_data (storage, what->from, error);
  g_autoptr (MusterBundleIndex) index =
      data != NULL ? muster_bundle_index_load (storage, what->from, error) : NULL;
  g_autofree char *path = muster_bundle_index_path (what->from);
  if (index == NULL)
    return FALSE;
  MusterBundlePlacing placing = {
      .index = index, .data = (const char *const *)data, .to = what->to, .version = what->version};
  const gboolean is_placed = muster_bundle_place (storage, &placing, error);
  what->is_unsure = placing.is_unsure;
  if (is_placed)
    muster_storage_remove_quietly (storage, path);
  return is_placed;
}

gboolean
muster_bundle_publish_with (MusterStorage *storage, MusterBundlePublishing *what, GError **error)
{
  g_return_val_if_fail (what->from != NULL && what->to != NULL, FALSE);
  storage = storage != NULL ? storage : muster_default_storage ();
  if (g_str_equal (what->from, what->to))
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "a checkpoint can't be published under its own name");
  else if (muster_storage_can_rename (storage, what->to) ? rename_prefix (storage, what, error)
                                                         : place_prefix (storage, what, error))
    return TRUE;
  g_prefix_error (error, "Publishing the checkpoint '%s': ", what->to);
  return FALSE;
}

gboolean
muster_bundle_publish (MusterStorage *storage, const char *from, const char *to, GError **error)
{
  MusterBundlePublishing what = {.from = from, .to = to};
  return muster_bundle_publish_with (storage, &what, error);
}
