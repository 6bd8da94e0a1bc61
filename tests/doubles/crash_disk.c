// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/crash_storage_private.h"

#include <string.h>

/* What is left of the bytes that weren't synced. */
typedef enum {
  TAIL_LOST,
  TAIL_KEPT,
  TAIL_TORN,      /* half of them */
  TAIL_ZEROS,     /* the length, and zeros */
  TAIL_EVEN_TORN, /* kept, but those of every other file torn */
  TAIL_ODD_TORN,
  N_TAILS
} Tail;

static const char *const tail_names[N_TAILS] = {"lost",
                                                "kept",
                                                "torn",
                                                "zeros",
                                                "kept, but torn in every other file",
                                                "kept, but torn in every second file"};

MusterCrashInode *
muster_crash_inode_new (guint number, const void *data, gsize size)
{
  MusterCrashInode *self = g_new0 (MusterCrashInode, 1);
  g_ref_count_init (&self->refs);
  self->number = number;
  self->live = g_byte_array_new ();
  g_byte_array_append (self->live, data, (guint)size);
  self->durable = g_bytes_new (data, size);
  return self;
}

MusterCrashInode *
muster_crash_inode_ref (MusterCrashInode *self)
{
  g_ref_count_inc (&self->refs);
  return self;
}

void
muster_crash_inode_unref (gpointer data)
{
  MusterCrashInode *self = data;
  if (self == NULL || !g_ref_count_dec (&self->refs))
    return;
  g_byte_array_unref (self->live);
  g_bytes_unref (self->durable);
  g_free (self);
}

void
muster_crash_inode_sync (MusterCrashInode *self)
{
  g_bytes_unref (self->durable);
  self->durable = g_bytes_new (self->live->data, self->live->len);
  self->is_new = FALSE;
}

/* The file as the crash leaves it. */
static MusterCrashInode *
inode_after (MusterCrashInode *self, Tail tail)
{
  gsize kept = self->is_new ? 0 : g_bytes_get_size (self->durable);
  gsize lost = self->live->len - kept;
  if (tail == TAIL_EVEN_TORN || tail == TAIL_ODD_TORN)
    tail = self->number % 2 == (tail == TAIL_ODD_TORN) ? TAIL_TORN : TAIL_KEPT;
  if (tail == TAIL_LOST)
    return muster_crash_inode_new (self->number, g_bytes_get_data (self->durable, NULL),
                                   g_bytes_get_size (self->durable));
  if (tail == TAIL_TORN)
    return muster_crash_inode_new (self->number, self->live->data, kept + lost / 2);
  MusterCrashInode *after =
      muster_crash_inode_new (self->number, self->live->data, self->live->len);
  if (tail == TAIL_ZEROS && lost > 0) {
    memset (after->live->data + kept, 0, lost);
    muster_crash_inode_sync (after);
  }
  return after;
}

void
muster_crash_change_free (gpointer data)
{
  MusterCrashChange *self = data;
  g_free (self->from);
  g_free (self->to);
  muster_crash_inode_unref (self->inode);
  g_free (self);
}

static void
apply_change (GHashTable *names, const MusterCrashChange *change)
{
  if (change->to != NULL)
    g_hash_table_replace (names, g_strdup (change->to), muster_crash_inode_ref (change->inode));
  if (change->from != NULL)
    g_hash_table_remove (names, change->from);
}

void
muster_crash_storage_change (MusterCrashStorage *self, const char *from, const char *to,
                             MusterCrashInode *inode)
{
  MusterCrashChange *change = g_new (MusterCrashChange, 1);
  *change = (MusterCrashChange){g_strdup (from), g_strdup (to),
                                inode != NULL ? muster_crash_inode_ref (inode) : NULL};
  g_ptr_array_add (self->changes, change);
  apply_change (self->live, change);
}

static gboolean
is_in (const char *path, GHashTable *directories)
{
  g_autofree char *directory = path != NULL ? g_path_get_dirname (path) : NULL;
  return directory != NULL && g_hash_table_contains (directories, directory);
}

GHashTable *
muster_crash_names_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, muster_crash_inode_unref);
}

GHashTable *
muster_crash_set_new (void)
{
  return g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
}

/* Which changes a sync of directory makes durable, and with them those before, on whose order they
 * depend: 0 for not at all, 1 for the new name alone, 2 for both names. */
static guint8 *
changes_of (MusterCrashStorage *self, const char *directory)
{
  g_autoptr (GHashTable) directories = muster_crash_set_new ();
  guint8 *marks = g_new0 (guint8, self->changes->len + 1);
  g_hash_table_add (directories, g_strdup (directory));
  for (guint i = self->changes->len; i-- > 0;) {
    const MusterCrashChange *change = self->changes->pdata[i];
    if (is_in (change->from, directories)) {
      marks[i] = 2;
      if (change->to != NULL)
        g_hash_table_add (directories, g_path_get_dirname (change->to));
    } else if (is_in (change->to, directories)) {
      marks[i] = change->from != NULL ? 1 : 2;
    }
  }
  return marks;
}

static void
apply_half (GHashTable *names, const MusterCrashChange *change)
{
  const MusterCrashChange half = {NULL, change->to, change->inode};
  apply_change (names, &half);
}

void
muster_crash_storage_sync_names (MusterCrashStorage *self, const char *directory)
{
  g_autofree guint8 *marks = changes_of (self, directory);
  GPtrArray *left = g_ptr_array_new_with_free_func (muster_crash_change_free);

  for (guint i = 0; i < self->changes->len; i++) {
    MusterCrashChange *change = self->changes->pdata[i];
    if (marks[i] == 2) {
      apply_change (self->durable, change);
      muster_crash_change_free (change);
      continue;
    }
    if (marks[i] == 1) {
      apply_half (self->durable, change);
      g_clear_pointer (&change->to, g_free);
      g_clear_pointer (&change->inode, muster_crash_inode_unref);
    }
    g_ptr_array_add (left, change);
  }
  g_ptr_array_set_free_func (self->changes, NULL);
  g_ptr_array_unref (self->changes);
  self->changes = left;
}

/* --- outcomes --- */

/* The directories that have changes which may be lost, if there are several. */
static GPtrArray *
changed_directories (MusterCrashStorage *self)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < self->changes->len; i++) {
    const MusterCrashChange *change = self->changes->pdata[i];
    g_autofree char *directory =
        g_path_get_dirname (change->to != NULL ? change->to : change->from);
    if (!g_ptr_array_find_with_equal_func (found, directory, g_str_equal, NULL))
      g_ptr_array_add (found, g_steal_pointer (&directory));
  }
  if (found->len < 2)
    g_ptr_array_set_size (found, 0);
  return found;
}

guint
muster_crash_storage_n_outcomes (MusterCrashStorage *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_autoptr (GPtrArray) directories = changed_directories (self);
  return (2 * self->changes->len + 1 + directories->len) * N_TAILS;
}

static void
keep_of_directory (MusterCrashStorage *self, GHashTable *names, const char *directory)
{
  g_autofree guint8 *marks = changes_of (self, directory);

  for (guint i = 0; i < self->changes->len; i++)
    if (marks[i] == 2)
      apply_change (names, self->changes->pdata[i]);
    else if (marks[i] == 1)
      apply_half (names, self->changes->pdata[i]);
}

static gboolean
is_of (GHashTable *names, const MusterCrashChange *change)
{
  return (change->from != NULL && g_hash_table_contains (names, change->from)) ||
         (change->to != NULL && g_hash_table_contains (names, change->to));
}

/* Keeps all but one change, and those after it that are of its names. */
static void
keep_all_but (MusterCrashStorage *self, GHashTable *names, guint lost)
{
  g_autoptr (GHashTable) lost_names = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < self->changes->len; i++) {
    const MusterCrashChange *change = self->changes->pdata[i];
    if (i != lost && !is_of (lost_names, change)) {
      apply_change (names, change);
      continue;
    }
    if (change->from != NULL)
      g_hash_table_add (lost_names, change->from);
    if (change->to != NULL)
      g_hash_table_add (lost_names, change->to);
  }
}

/* The names that a crash leaves: with the first changes, all but one, or all of one directory's. */
static GHashTable *
names_after (MusterCrashStorage *self, guint which, char **what)
{
  g_autoptr (GPtrArray) directories = changed_directories (self);
  GHashTable *names = muster_crash_names_new ();
  const guint n = self->changes->len;
  GHashTableIter iter;
  gpointer path, inode;
  g_hash_table_iter_init (&iter, self->durable);
  while (g_hash_table_iter_next (&iter, &path, &inode))
    g_hash_table_insert (names, g_strdup (path), muster_crash_inode_ref (inode));
  if (which <= n) {
    *what = g_strdup_printf ("the first %u of %u changes of names kept", which, n);
    for (guint i = 0; i < which; i++)
      apply_change (names, self->changes->pdata[i]);
  } else if (which <= 2 * n) {
    const guint lost = which - n - 1;
    *what = g_strdup_printf ("change %u of %u of names lost", lost + 1, n);
    keep_all_but (self, names, lost);
  } else {
    const char *directory = directories->pdata[which - 2 * n - 1];
    *what = g_strdup_printf ("the changes of '%s' alone kept", directory);
    keep_of_directory (self, names, directory);
  }
  return names;
}

void
muster_crash_storage_add_directory (MusterCrashStorage *self, const char *directory)
{
  g_autofree char *at = g_strdup (directory);

  while (!g_str_equal (at, "/") && !g_str_equal (at, ".")) {
    char *above = g_path_get_dirname (at);
    g_hash_table_add (self->directories, g_steal_pointer (&at));
    at = above;
  }
}

static void
add_after (MusterCrashStorage *after, GHashTable *names, Tail tail)
{
  g_autoptr (GHashTable) made = g_hash_table_new (NULL, NULL); /* a file may have two names */
  GHashTableIter iter;
  gpointer path, inode;
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &path, &inode)) {
    MusterCrashInode *is = g_hash_table_lookup (made, inode);
    if (is == NULL) {
      is = inode_after (inode, tail);
      g_hash_table_insert (made, inode, is);
    } else {
      muster_crash_inode_ref (is);
    }
    g_hash_table_insert (after->durable, g_strdup (path), is);
    g_hash_table_insert (after->live, g_strdup (path), muster_crash_inode_ref (is));
    g_autofree char *directory = g_path_get_dirname (path);
    muster_crash_storage_add_directory (after, directory);
  }
}

/* A store of these names, its directories those of self. */
static MusterCrashStorage *
store_after (MusterCrashStorage *self, GHashTable *names, Tail tail)
{
  MusterCrashStorage *after = muster_crash_storage_new ();
  GHashTableIter iter;
  gpointer path;
  add_after (after, names, tail);
  g_hash_table_iter_init (&iter, self->directories);
  while (g_hash_table_iter_next (&iter, &path, NULL))
    g_hash_table_add (after->directories, g_strdup (path));
  after->n_inodes = self->n_inodes;
  return after;
}

MusterCrashStorage *
muster_crash_storage_outcome (MusterCrashStorage *self, guint outcome, char **what)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_autofree char *kept = NULL;
  g_autoptr (GHashTable) names = names_after (self, outcome / N_TAILS, &kept);

  if (what != NULL)
    *what =
        g_strdup_printf ("%s, bytes that weren't synced %s", kept, tail_names[outcome % N_TAILS]);
  return store_after (self, names, outcome % N_TAILS);
}

gboolean
muster_crash_storage_is_tried (guint nth)
{
  if (g_getenv ("MUSTER_LONG") != NULL)
    return TRUE;
  return nth % (g_getenv ("MUSTER_SHORT") != NULL ? 11 : 3) == 0;
}

MusterCrashStorage *
muster_crash_storage_copy (MusterCrashStorage *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return store_after (self, self->live, TAIL_KEPT);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* (transfer container) */
GPtrArray *
muster_crash_sorted_keys (GHashTable *table)
{
  GPtrArray *keys = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer key;
  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    g_ptr_array_add (keys, key);
  g_ptr_array_sort (keys, compare_names);
  return keys;
}

char *
muster_crash_storage_fingerprint (MusterCrashStorage *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_autoptr (GPtrArray) paths = muster_crash_sorted_keys (self->live);
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  for (guint i = 0; i < paths->len; i++) {
    const MusterCrashInode *inode = g_hash_table_lookup (self->live, paths->pdata[i]);
    guint64 size = inode->live->len;
    g_checksum_update (sum, paths->pdata[i], (gssize)strlen (paths->pdata[i]) + 1);
    g_checksum_update (sum, (const guchar *)&size, sizeof size);
    g_checksum_update (sum, inode->live->data, (gssize)size);
  }
  return g_strdup (g_checksum_get_string (sum));
}
