// SPDX-License-Identifier: Apache-2.0
#include "server/core/held_files.h"

#include "base/clock.h"
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/memory_account_private.h"

#include <string.h>

#define LONGEST_PATH 1024
#define LONGEST_WHO  300
/* What a file or an upload costs beside its bytes and its name. */
#define FILE_BYTES 512
/* An upload that has stood still for this long may go when there is no room for another one. */
#define STALE_US (60 * MUSTER_SECOND)

/* A file, or an upload. Its blocks are full but for the last. */
typedef struct {
  char *path;     /* (owned) */
  char *who;      /* (owned) (nullable) an upload's */
  GArray *blocks; /* (owned) (element-type MusterHeldBlock) */
  guint64 size, version;
  guint64 n_counted; /* bytes of the budget */
  gint64 time_us;    /* when it appeared, or was begun, since 1970 */
  gint64 moved_us;   /* an upload's last block */
} File;

struct _MusterHeldFiles {
  guint64 max;
  GMutex lock;
  /* guarded by lock */
  GHashTable *files;   /* (owned) (element-type utf8 File) */
  GHashTable *uploads; /* (owned) (element-type guint64 File) by version */
  GHashTable *holders; /* (owned) (element-type utf8 Holder) by path */
  guint64 used, last_version;
};

/* A process that holds a path. */
typedef struct {
  char *who; /* (owned) */
  gpointer token;
  GDestroyNotify end;
} Holder;

static void
holder_free (gpointer data)
{
  Holder *self = data;
  if (self == NULL)
    return;
  self->end (self->token);
  g_free (self->who);
  g_free (self);
}

static GHashTable *
holders_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, holder_free);
}

static void
block_clear (gpointer data)
{
  g_bytes_unref (((MusterHeldBlock *)data)->bytes);
}

static void
file_free (gpointer data)
{
  File *self = data;
  g_free (self->path);
  g_free (self->who);
  g_array_unref (self->blocks);
  g_free (self);
}

MusterHeldFiles *
muster_held_files_new (guint64 n_bytes)
{
  MusterHeldFiles *self = g_new0 (MusterHeldFiles, 1);
  self->max = n_bytes;
  /* An upload of a server before this one isn't one of this. */
  self->last_version = (guint64)g_random_int () << 30;
  g_mutex_init (&self->lock);
  self->files = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, file_free);
  self->uploads = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, file_free);
  self->holders = holders_new ();
  return self;
}

void
muster_held_files_free (MusterHeldFiles *self)
{
  if (self == NULL)
    return;
  muster_memory_release (MUSTER_MEMORY_RESOURCES, self->used);
  g_hash_table_unref (self->files);
  g_hash_table_unref (self->uploads);
  g_hash_table_unref (self->holders);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static gint64
now (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static gint64
wall (void)
{
  return muster_clock_wall_us (muster_system_clock ());
}

/* --- what may be held --- */

static gboolean
is_plain (const char *path)
{
  g_auto (GStrv) names = g_strsplit (path, "/", -1);
  for (char **name = names; *name != NULL; name++)
    if (**name == '\0' || strcmp (*name, ".") == 0 || strcmp (*name, "..") == 0)
      return FALSE;
  return g_strv_length (names) >= 2;
}

static gboolean
check (const MusterHeldFiles *self, const char *path, GError **error)
{
  if (self->max == 0)
    return muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                        "this server keeps no checkpoints in its memory; start it with "
                        "--checkpoint-memory=SIZE");
  return path == NULL || (strlen (path) <= LONGEST_PATH && is_plain (path)) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid path '%s' (use NAME/FILE)",
                      path);
}

static gboolean
check_who (const char *who, GError **error)
{
  return (*who != '\0' && strlen (who) <= LONGEST_WHO) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the caller's name is empty or longer than %d bytes", LONGEST_WHO);
}

static void
release (MusterHeldFiles *self, const File *file)
{
  self->used -= file->n_counted;
  muster_memory_release (MUSTER_MEMORY_RESOURCES, file->n_counted);
}

static void
drop_file (MusterHeldFiles *self, const char *path)
{
  const File *file = g_hash_table_lookup (self->files, path);
  if (file == NULL)
    return;
  release (self, file);
  g_hash_table_remove (self->files, path);
}

static void
drop_upload (MusterHeldFiles *self, guint64 upload)
{
  const File *file = g_hash_table_lookup (self->uploads, &upload);
  if (file == NULL)
    return;
  release (self, file);
  g_hash_table_remove (self->uploads, &upload);
}

/* Abandons uploads below a directory (nullable) that others began (who is (nullable)), and whose
 * last block came before that time. */
static void
drop_uploads (MusterHeldFiles *self, const char *below, const char *who, gint64 before_us)
{
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->uploads);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const File *file = value;
    if ((below != NULL && !g_str_has_prefix (file->path, below)) || file->moved_us >= before_us ||
        (who != NULL && strcmp (file->who, who) == 0))
      continue;
    release (self, file);
    g_hash_table_iter_remove (&iter);
  }
}

/* Takes bytes for a file. */
static gboolean
take (MusterHeldFiles *self, File *file, guint64 n, GError **error)
{
  if (n > self->max - self->used)
    drop_uploads (self, NULL, NULL, now () - STALE_US);
  if (n > self->max - self->used)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "the memory for checkpoints is full (--checkpoint-memory)");
  if (!muster_memory_take (MUSTER_MEMORY_RESOURCES, n, error))
    return FALSE;
  self->used += n;
  file->n_counted += n;
  return TRUE;
}

static File *
file_new (MusterHeldFiles *self, const char *path, const char *who, GError **error)
{
  File *file = g_new (File, 1);
  *file = (File){.path = g_strdup (path),
                 .who = g_strdup (who),
                 .blocks = g_array_new (FALSE, FALSE, sizeof (MusterHeldBlock)),
                 .version = ++self->last_version,
                 .time_us = wall (),
                 .moved_us = now ()};
  g_array_set_clear_func (file->blocks, block_clear);
  if (take (self, file, FILE_BYTES + strlen (path), error))
    return file;
  file_free (file);
  return NULL;
}

static gboolean
is_whole (const MusterHeldBlock *block, GError **error)
{
  gsize size;
  const void *data = g_bytes_get_data (block->bytes, &size);
  return muster_crc32c_extend (0, data, size) == block->crc32c ||
         muster_fail (error, MUSTER_ERROR_DATA_LOSS, "a block arrived with another checksum");
}

static gboolean
add_block (MusterHeldFiles *self, File *file, const MusterHeldBlock *block, GError **error)
{
  const gsize size = g_bytes_get_size (block->bytes);
  if (size > MUSTER_HELD_BLOCK || file->size % MUSTER_HELD_BLOCK != 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "'%s': blocks have 4 MiB, except the last one", file->path);
  if (!is_whole (block, error) || !take (self, file, size, error))
    return FALSE;
  const MusterHeldBlock own = {g_bytes_ref (block->bytes), block->crc32c};
  g_array_append_val (file->blocks, own);
  file->size += size;
  return TRUE;
}

/* --- uploads --- */

static File *
find_upload (MusterHeldFiles *self, guint64 upload, GError **error)
{
  File *file = g_hash_table_lookup (self->uploads, &upload);
  if (file == NULL)
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                 "the upload was abandoned, or the server was restarted");
  return file;
}

guint64
muster_held_files_create (MusterHeldFiles *self, const char *path, const char *who, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  File *file = check (self, path, error) && check_who (who, error)
                   ? file_new (self, path, who, error)
                   : NULL;
  if (file == NULL)
    return 0;
  g_hash_table_insert (self->uploads, &file->version, file);
  return file->version;
}

gboolean
muster_held_files_append (MusterHeldFiles *self, guint64 upload, guint64 offset,
                          const MusterHeldBlock *block, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  File *file = find_upload (self, upload, error);
  if (file == NULL)
    return FALSE;
  file->moved_us = now (); /* what makes room leaves this one */
  if (offset + g_bytes_get_size (block->bytes) == file->size && file->blocks->len > 0)
    return TRUE; /* the answer was lost */
  return offset == file->size ? add_block (self, file, block, error)
                              : muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                                             "'%s': a block is missing", file->path);
}

gboolean
muster_held_files_close (MusterHeldFiles *self, guint64 upload, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  File *file = find_upload (self, upload, error);
  if (file == NULL)
    return FALSE;
  if (g_hash_table_contains (self->files, file->path))
    return muster_fail (error, MUSTER_ERROR_ABORTED, "'%s': another writer has made it",
                        file->path);
  g_hash_table_steal (self->uploads, &upload);
  file->time_us = wall ();
  g_hash_table_insert (self->files, file->path, file);
  return TRUE;
}

void
muster_held_files_abandon (MusterHeldFiles *self, guint64 upload)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  drop_upload (self, upload);
}

gboolean
muster_held_files_sweep (MusterHeldFiles *self, const char *directory, const char *who,
                         gint64 before_us, GError **error)
{
  g_autofree char *below = g_strconcat (directory, "/", NULL);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check (self, NULL, error))
    return FALSE;
  const gint64 wall_us = wall (), age_us = wall_us - CLAMP (before_us, 0, wall_us);
  drop_uploads (self, below, who, now () - age_us);
  return TRUE;
}

/* --- files --- */

static File *
find (MusterHeldFiles *self, const char *path, GError **error)
{
  File *file = check (self, path, error) ? g_hash_table_lookup (self->files, path) : NULL;
  if (file == NULL && error != NULL && *error == NULL)
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "'%s': there is no such file", path);
  return file;
}

/* Adds what may be more than a block. */
static gboolean
add_blocks (MusterHeldFiles *self, File *file, const MusterHeldBlock *all, GError **error)
{
  const gsize size = g_bytes_get_size (all->bytes);
  gboolean is_added = is_whole (all, error);
  for (gsize at = 0; is_added && at < size; at += MUSTER_HELD_BLOCK) {
    const gsize n = MIN (MUSTER_HELD_BLOCK, size - at);
    g_autoptr (GBytes) bytes = g_bytes_new_from_bytes (all->bytes, at, n);
    const MusterHeldBlock block = {bytes,
                                   muster_crc32c_extend (0, g_bytes_get_data (bytes, NULL), n)};
    is_added = add_block (self, file, &block, error);
  }
  return is_added;
}

guint64
muster_held_files_replace (MusterHeldFiles *self, const char *path, const MusterHeldBlock *content,
                           const guint64 *version, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check (self, path, error))
    return 0;
  const File *before = g_hash_table_lookup (self->files, path);
  if (version != NULL && *version != (before != NULL ? before->version : 0)) {
    muster_fail (error, MUSTER_ERROR_ABORTED, "'%s': another writer has changed it", path);
    return 0;
  }
  File *file = file_new (self, path, NULL, error);
  if (file == NULL)
    return 0;
  if (!add_blocks (self, file, content, error)) {
    release (self, file);
    file_free (file);
    return 0;
  }
  drop_file (self, path);
  g_hash_table_insert (self->files, file->path, file);
  return file->version;
}

gboolean
muster_held_files_stat (MusterHeldFiles *self, const char *path, MusterHeldInfo *info,
                        GError **error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const File *file = find (self, path, &why);
  if (file != NULL)
    *info = (MusterHeldInfo){file->size, file->version, file->time_us};
  else
    g_propagate_error (error, g_steal_pointer (&why));
  return file != NULL;
}

gboolean
muster_held_files_read (MusterHeldFiles *self, const char *path, guint64 version, guint64 offset,
                        MusterHeldBlock *block, GError **error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const File *file = find (self, path, &why);
  const guint64 number = offset / MUSTER_HELD_BLOCK;
  if (file != NULL && file->version != version)
    muster_fail (&why, MUSTER_ERROR_ABORTED, "'%s': another writer has changed it", path);
  else if (file != NULL && (offset % MUSTER_HELD_BLOCK != 0 || number >= file->blocks->len))
    muster_fail (&why, MUSTER_ERROR_OUT_OF_RANGE, "'%s' has no block there", path);
  if (why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  *block = g_array_index (file->blocks, MusterHeldBlock, number);
  g_bytes_ref (block->bytes);
  return TRUE;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Files, and what lies deeper by its first name: as a file system lists. */
char **
muster_held_files_list (MusterHeldFiles *self, const char *directory, GError **error)
{
  g_autofree char *below = g_strconcat (directory, "/", NULL);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  GHashTableIter iter;
  gpointer path;
  if (!check (self, NULL, error))
    return NULL;
  g_hash_table_iter_init (&iter, self->files);
  while (g_hash_table_iter_next (&iter, &path, NULL))
    if (g_str_has_prefix (path, below)) {
      const char *name = (const char *)path + strlen (below);
      g_hash_table_add (seen, g_strndup (name, strcspn (name, "/")));
    }
  g_autoptr (GPtrArray) names = g_ptr_array_new_null_terminated (0, g_free, TRUE);
  g_hash_table_iter_init (&iter, seen);
  while (g_hash_table_iter_next (&iter, &path, NULL))
    g_ptr_array_add (names, g_strdup (path));
  g_ptr_array_sort (names, compare_names);
  return (char **)g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

gboolean
muster_held_files_remove (MusterHeldFiles *self, const char *path, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check (self, path, error))
    return FALSE;
  drop_file (self, path);
  return TRUE;
}

gboolean
muster_held_files_copy (MusterHeldFiles *self, const char *from, const char *to, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const File *source = find (self, from, error);
  if (source == NULL || !check (self, to, error))
    return FALSE;
  if (g_hash_table_contains (self->files, to))
    return muster_fail (error, MUSTER_ERROR_ABORTED, "'%s': another writer has made it", to);
  File *file = file_new (self, to, NULL, error);
  gboolean is_copied = file != NULL;
  for (guint i = 0; is_copied && i < source->blocks->len; i++)
    is_copied = add_block (self, file, &g_array_index (source->blocks, MusterHeldBlock, i), error);
  if (is_copied) {
    g_hash_table_insert (self->files, file->path, file);
  } else if (file != NULL) {
    release (self, file);
    file_free (file);
  }
  return is_copied;
}

gboolean
muster_held_files_space (MusterHeldFiles *self, guint64 *n_bytes, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check (self, NULL, error))
    return FALSE;
  *n_bytes = self->max - self->used;
  return TRUE;
}

/* Takes the path's holder away, which is freed without the lock: its end may call this module. */
static Holder *
steal_holder (MusterHeldFiles *self, const char *path)
{
  gpointer key = NULL, holder = NULL;
  (void)g_hash_table_steal_extended (self->holders, path, &key, &holder);
  g_free (key);
  return holder;
}

gboolean
muster_held_files_hold (MusterHeldFiles *self, const char *path, const char *who, gpointer token,
                        GDestroyNotify end, GError **error)
{
  Holder *before = NULL;
  g_mutex_lock (&self->lock);
  const Holder *known = g_hash_table_lookup (self->holders, path);
  const gboolean is_free = known == NULL || strcmp (known->who, who) == 0;
  const gboolean is_held = check (self, path, error) && check_who (who, error) &&
                           (is_free || muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                                                    "'%s' is in use by %s", path, known->who));
  if (is_held) {
    Holder *holder = g_new (Holder, 1);
    *holder = (Holder){g_strdup (who), token, end};
    before = steal_holder (self, path);
    g_hash_table_insert (self->holders, g_strdup (path), holder);
  }
  g_mutex_unlock (&self->lock);
  holder_free (before);
  return is_held;
}

void
muster_held_files_let_go (MusterHeldFiles *self, const char *path, gconstpointer token)
{
  g_mutex_lock (&self->lock);
  const Holder *known = g_hash_table_lookup (self->holders, path);
  Holder *holder = known != NULL && known->token == token ? steal_holder (self, path) : NULL;
  g_mutex_unlock (&self->lock);
  holder_free (holder);
}

void
muster_held_files_end_holds (MusterHeldFiles *self)
{
  g_mutex_lock (&self->lock);
  g_autoptr (GHashTable) ending = self->holders;
  self->holders = holders_new ();
  g_mutex_unlock (&self->lock);
}
