// SPDX-License-Identifier: Apache-2.0
/* Publishes a checkpoint in a store that can't rename: the data files already have their final
 * names, and the index becomes current by a conditional write (docs/decisions/0026). */
#include "checkpoint/format/bundle_place_private.h"

#include "base/error.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

gint32
muster_bundle_shards_of (const char *name, const char *base)
{
  const gsize n = strlen (base);
  const char *rest = name + n;
  guint64 n_shards;
  if (strncmp (name, base, n) != 0 || !g_str_has_prefix (rest, ".data-"))
    return 0;
  rest += strlen (".data-");
  const gsize n_digits = strspn (rest, "0123456789");
  if (n_digits < 5 || !g_str_has_prefix (rest + n_digits, "-of-"))
    return 0;
  rest += n_digits + strlen ("-of-");
  return strlen (rest) >= 5 && g_ascii_string_to_unsigned (rest, 10, 1, G_MAXINT32, &n_shards, NULL)
             ? (gint32)n_shards
             : 0;
}

gint32
muster_bundle_free_number (MusterStorage *storage, const char *prefix, gint32 n, GError **error)
{
  g_autofree char *home = muster_bundle_home (prefix);
  g_autofree char *base = g_path_get_basename (home);
  g_autofree char *directory = g_path_get_dirname (home);
  g_autoptr (GHashTable) taken = g_hash_table_new (NULL, NULL);
  g_autoptr (GError) why = NULL;
  g_auto (GStrv) names = muster_storage_list (storage, directory, &why);
  if (names == NULL && !muster_storage_failure_is_absent (why)) {
    g_propagate_error (error, g_steal_pointer (&why));
    return 0;
  }
  for (gsize i = 0; names != NULL && names[i] != NULL; i++)
    g_hash_table_add (taken, GINT_TO_POINTER (muster_bundle_shards_of (names[i], base)));
  while (g_hash_table_contains (taken, GINT_TO_POINTER (n)))
    n++;
  return n;
}

char *
muster_bundle_index_version (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autofree char *path = muster_bundle_index_path (prefix);
  char *version = NULL;
  if (muster_storage_can_rename (storage, path))
    return NULL;
  g_autoptr (GError) why = NULL;
  g_autoptr (GBytes) bytes = muster_storage_read_versioned (storage, path, &version, &why);
  if (bytes == NULL && !muster_storage_failure_is_absent (why))
    g_propagate_error (error, g_steal_pointer (&why));
  return version;
}

/* --- one publication --- */

typedef struct {
  MusterStorage *storage;
  MusterBundlePlacing *placing;
  char *index_path; /* (owned) */
  char *version;    /* (owned) of the index that is replaced; "" if there is none */
  gint32 n_data;
  gint32 n_shards; /* n_data, plus empty ones for a number of its own */
  gint32 n_old;    /* data files of the replaced index; 0: they stay */
  gint32 n_copied; /* data files that were made here */
} Place;

static void
place_clear (Place *self)
{
  g_free (self->index_path);
  g_free (self->version);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Place, place_clear)

static gboolean
are_in_place (const Place *self)
{
  for (gint32 i = 0; i < self->n_data; i++) {
    g_autofree char *path = muster_bundle_data_path (self->placing->to, i, self->n_data);
    if (strcmp (self->placing->data[i], path) != 0)
      return FALSE;
  }
  return TRUE;
}

/* Finds what is replaced: its version, and the files to remove afterwards. */
static gboolean
find_old (Place *self, GError **error)
{
  const char *to = self->placing->to;
  g_autoptr (GError) why = NULL;
  self->version = self->placing->version != NULL
                      ? g_strdup (self->placing->version)
                      : muster_bundle_index_version (self->storage, to, &why);
  if (why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  g_autofree char *home = muster_bundle_home (to);
  /* An index that can't be read keeps its files. */
  if (self->version != NULL && *self->version != '\0' && strcmp (home, to) == 0)
    (void)muster_bundle_index_count_shards (self->storage, to, &self->n_old, NULL);
  return TRUE;
}

static gboolean
copy_data (Place *self, GError **error)
{
  const char *to = self->placing->to;
  self->n_shards = self->n_data;
  if (are_in_place (self))
    return TRUE;
  self->n_shards = muster_bundle_free_number (self->storage, to, self->n_data, error);
  if (self->n_shards == 0)
    return FALSE;
  for (; self->n_copied < self->n_shards; self->n_copied++) {
    const gint32 i = self->n_copied;
    g_autofree char *path = muster_bundle_data_path (to, i, self->n_shards);
    if (!(i < self->n_data
              ? muster_storage_copy (self->storage, self->placing->data[i], path, error)
              : muster_storage_write_synced (self->storage, path, NULL, 0, error)))
      return FALSE;
  }
  return TRUE;
}

void
muster_bundle_remove_data (MusterStorage *storage, const char *prefix, gint32 n, gint32 n_shards)
{
  for (gint32 i = 0; i < n; i++) {
    g_autofree char *path = muster_bundle_data_path (prefix, i, n_shards);
    (void)muster_storage_remove (storage, path, NULL);
  }
}

/* Returns TRUE if the index is this one, whatever the store answered. Sets is_unsure if that
 * can't be determined. */
static gboolean
is_there (Place *self, GBytes *index)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GBytes) found = muster_storage_read (self->storage, self->index_path, &why);
  self->placing->is_unsure = TRUE;
  if (found == NULL)
    return FALSE;
  return g_bytes_equal (found, index);
}

static gboolean
replace_index (Place *self, GError **error)
{
  MusterBundlePlacing *placing = self->placing;
  g_autoptr (GError) why = NULL;
  placing->index->n_shards = self->n_shards;
  g_autoptr (GBytes) index = muster_bundle_index_save (placing->index, error);
  if (index == NULL)
    return FALSE;
  gsize size;
  const void *data = g_bytes_get_data (index, &size);
  placing->is_published = muster_storage_replace (self->storage, self->index_path, data, size,
                                                  self->version, NULL, &why) ||
                          (!muster_error_is (why, MUSTER_ERROR_ABORTED) && is_there (self, index));
  placing->is_unsure = placing->is_unsure && !placing->is_published;
  if (!placing->is_published)
    g_propagate_error (error, g_steal_pointer (&why));
  return placing->is_published;
}

/* Removes files without an index: the old checkpoint's, and those that were copied. */
static void
clean_up (Place *self)
{
  g_autoptr (MusterStorage) storage = muster_storage_for_cleanup (self->storage);
  if (self->n_old > 0 && self->n_old != self->n_shards)
    muster_bundle_remove_data (storage, self->placing->to, self->n_old, self->n_old);
  for (gint32 i = 0; i < self->n_data && self->n_copied > 0; i++)
    (void)muster_storage_remove (storage, self->placing->data[i], NULL);
}

gboolean
muster_bundle_place (MusterStorage *storage, MusterBundlePlacing *placing, GError **error)
{
  g_auto (Place) self = {.storage = storage,
                         .placing = placing,
                         .index_path = muster_bundle_index_path (placing->to),
                         .n_data = (gint32)g_strv_length ((char **)placing->data)};
  placing->is_published = placing->is_unsure = FALSE;
  if (find_old (&self, error) && copy_data (&self, error) && replace_index (&self, error)) {
    clean_up (&self);
    return TRUE;
  }
  if (!placing->is_unsure) {
    g_autoptr (MusterStorage) own = muster_storage_for_cleanup (storage);
    muster_bundle_remove_data (own, placing->to, self.n_copied, self.n_shards);
  }
  return FALSE;
}

/* Returns TRUE if the data files may belong to a published checkpoint. */
static gboolean
are_used (MusterStorage *storage, const char *prefix, gint32 n_shards)
{
  g_autofree char *home = muster_bundle_home (prefix);
  g_autofree char *path = muster_bundle_index_path (home);
  MusterStorageInfo info;
  g_autoptr (GError) why = NULL;
  gint32 n;
  if (strcmp (home, prefix) == 0)
    return FALSE;
  if (!muster_storage_stat (storage, path, &info, &why))
    return !muster_storage_failure_is_absent (why);
  return !muster_bundle_index_count_shards (storage, home, &n, NULL) || n == n_shards;
}

void
muster_bundle_discard (MusterStorage *storage, const char *prefix)
{
  g_autofree char *path = muster_bundle_index_path (prefix);
  gint32 n_shards = 0;
  (void)muster_bundle_index_count_shards (storage, prefix, &n_shards, NULL);
  if (n_shards > 0 && are_used (storage, prefix, n_shards))
    n_shards = 0;
  muster_bundle_remove_data (storage, prefix, n_shards, n_shards);
  (void)muster_storage_remove (storage, path, NULL);
}
