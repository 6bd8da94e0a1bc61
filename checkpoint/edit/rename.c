// SPDX-License-Identifier: Apache-2.0
/* Writes a checkpoint with other names of its variables. Only the index changes; the data files
 * are copied as they are. A rule that fits nothing and two variables of one name are errors. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/edit/copy_data_private.h"
#include "checkpoint/format/object_graph.h"

#include <string.h>

typedef struct {
  const char *old, *new;
  gboolean is_prefix; /* both end in "*" */
  gsize n_old;        /* length without the "*" */
  gsize n_used;       /* number of names that the rule fits */
} Rule;

typedef struct {
  MusterEditWork work;
  MusterEditTarget target;
  const char *from;
  MusterStorageLock *reading; /* (owned) (nullable) */
  GArray *rules;              /* (owned) (element-type Rule) */
  MusterBundleIndex *index;   /* (owned) of from */
  MusterBundleIndex *result;  /* (owned) */
  guint64 bytes;
} Rename;

/* The result may replace it, and then its data is removed unless somebody else reads it. TRUE. */
static gboolean
release_source (Rename *self)
{
  muster_storage_unlock (self->work.plain, g_steal_pointer (&self->reading));
  return TRUE;
}

static void
rename_clear (Rename *self)
{
  muster_edit_target_clear (&self->target);
  if (self->reading != NULL)
    (void)release_source (self);
  g_clear_pointer (&self->rules, g_array_unref);
  g_clear_pointer (&self->index, muster_bundle_index_free);
  g_clear_pointer (&self->result, muster_bundle_index_free);
  muster_edit_work_clear (&self->work);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Rename, rename_clear)

static gboolean
refuse (const char *old, const char *new, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the names '%s' and '%s': %s", old, new,
                      why);
}

static gboolean
read_rules (Rename *self, const char *const *names, GError **error)
{
  self->rules = g_array_new (FALSE, FALSE, sizeof (Rule));
  for (gsize i = 0; names[i] != NULL; i += 2) {
    const char *old = names[i], *new = names[i + 1];
    if (new == NULL)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the name '%s' has no new name",
                          old);
    const gboolean is_prefix = g_str_has_suffix (old, "*");
    if (is_prefix != g_str_has_suffix (new, "*"))
      return refuse (old, new, "either both end in '*' or neither does", error);
    if (*old == '\0' || *new == '\0' || !g_utf8_validate (new, -1, NULL))
      return refuse (old, new, "a name must be UTF-8 and not empty", error);
    const Rule rule = {
        .old = old, .new = new, .is_prefix = is_prefix, .n_old = strlen (old) - is_prefix};
    g_array_append_val (self->rules, rule);
  }
  return self->rules->len > 0 ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "no names to change");
}

/* Returns the new name (transfer full). The first rule that fits counts; the others that fit are
 * marked as used, too. */
static char *
new_name (Rename *self, const char *name)
{
  char *found = NULL;
  for (guint i = 0; i < self->rules->len; i++) {
    Rule *rule = &g_array_index (self->rules, Rule, i);
    if (strncmp (name, rule->old, rule->n_old) != 0 ||
        (!rule->is_prefix && name[rule->n_old] != '\0'))
      continue;
    rule->n_used++;
    if (found == NULL)
      found = g_strdup_printf ("%.*s%s", (int)(strlen (rule->new) - rule->is_prefix), rule->new,
                               name + rule->n_old);
  }
  return found != NULL ? found : g_strdup (name);
}

/* Notes an old name under its new one, for the message if another takes that. */
static gboolean
note_name (Rename *self, GHashTable *taken, const char *old, const char *new, GError **error)
{
  const char *other = g_hash_table_lookup (taken, new);
  if (*new == '\0')
    return refuse (old, new, "a name must not be empty", error);
  if (other != NULL)
    return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                        "in '%s' both '%s' and '%s' would be called '%s'", self->from, other, old,
                        new);
  g_hash_table_insert (taken, g_strdup (new), (gpointer)old);
  return TRUE;
}

/* Adds an entry under another key. */
static void
add_as (Rename *self, const MusterIndexEntry *entry, const void *key, gsize key_size)
{
  MusterIndexEntry renamed = *entry;
  renamed.key = key;
  renamed.key_size = key_size;
  muster_bundle_index_add (self->result, &renamed);
}

/* Adds the slices, whose keys contain the name, and notes them in moved. */
static void
add_slices (Rename *self, const MusterIndexEntry *whole, const char *name, GHashTable *moved)
{
  const int n_dims = whole->entry.n_dims;
  for (gsize i = 0; i < whole->n_slices; i++) {
    const MusterExtent *slice = whole->slices + i * (gsize)n_dims;
    g_autoptr (GByteArray) old = g_byte_array_new ();
    g_autoptr (GByteArray) new = g_byte_array_new ();
    muster_slice_append_key (old, whole->entry.name, n_dims, slice);
    muster_slice_append_key (new, name, n_dims, slice);
    const MusterIndexEntry *part = muster_bundle_index_find (self->index, old->data, old->len);
    if (g_hash_table_add (moved, (gpointer)part))
      add_as (self, part, new->data, new->len);
  }
}

static gboolean
make_index (Rename *self, GError **error)
{
  g_autoptr (GHashTable) taken = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GHashTable) moved = g_hash_table_new (NULL, NULL);
  const MusterBundleIndex *index = self->index;
  self->result = muster_bundle_index_new ();
  self->result->n_shards = index->n_shards;
  for (guint i = index->n_parts; i < index->entries->len; i++) {
    const MusterIndexEntry *whole = &g_array_index (index->entries, MusterIndexEntry, i);
    g_autofree char *name = new_name (self, whole->entry.name);
    if (!note_name (self, taken, whole->entry.name, name, error))
      return FALSE;
    add_slices (self, whole, name, moved);
    add_as (self, whole, name, strlen (name));
  }
  for (guint i = 0; i < index->n_parts;
       i++) { /* slices of no variable, whose bytes are in the files */
    const MusterIndexEntry *part = &g_array_index (index->entries, MusterIndexEntry, i);
    if (!g_hash_table_contains (moved, part))
      muster_bundle_index_add (self->result, part);
  }
  return TRUE;
}

static gboolean
check_used (const Rename *self, GError **error)
{
  for (guint i = 0; i < self->rules->len; i++) {
    const Rule *rule = &g_array_index (self->rules, Rule, i);
    if (rule->n_used == 0)
      return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "'%s' has no tensor %s'%s'", self->from,
                          rule->is_prefix ? "like " : "", rule->old);
  }
  return TRUE;
}

static guint32
id_of (const Rename *self)
{
  guint32 id = muster_crc32c_extend (0, (const guint8 *)"rename", 7);
  return muster_crc32c_extend (id, (const guint8 *)self->from, strlen (self->from));
}

static gboolean
write_files (Rename *self, GBytes *index, GError **error)
{
  MusterDataCopy copy = {
      .work = &self->work, .from = self->from, .index = self->index, .to = self->target.temporary};
  g_autofree char *path = muster_bundle_index_path (copy.to);
  const gboolean is_done =
      muster_edit_copy_data (&copy, error) && muster_edit_write (&self->work, path, index, error);
  self->bytes = copy.bytes;
  return is_done;
}

static gboolean
rename_all (Rename *self, const char *to, const MusterEditOptions *options, GError **error)
{
  MusterEditWork *work = &self->work;
  self->reading = muster_edit_lock_source (work, self->from);
  self->index = muster_bundle_index_load (work->storage, self->from, error);
  if (self->index == NULL)
    return FALSE;
  if (muster_bundle_index_find (self->index, MUSTER_OBJECT_GRAPH_KEY,
                                strlen (MUSTER_OBJECT_GRAPH_KEY)) != NULL)
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "'%s' is object-based: its names are the paths of a program's objects. "
                        "Change the program, or extract variables without the object graph first",
                        self->from);
  MusterBundleData *data =
      muster_bundle_data_new (work->storage, self->from, self->index->n_shards);
  const gboolean is_sound = muster_edit_check_index (data, self->index, self->from, error);
  muster_bundle_data_free (data);
  if (!is_sound || !make_index (self, error) || !check_used (self, error) ||
      !muster_edit_measure (work->storage, self->from, self->index->n_shards, &work->total, error))
    return FALSE;
  work->total *= muster_edit_reads_back (work, options, to) ? 2 : 1;
  g_autoptr (GBytes) index = muster_bundle_index_save (self->result, error);
  return index != NULL &&
         muster_edit_target_begin (&self->target, work, to, id_of (self),
                                   options != NULL && options->replaces, FALSE, error) &&
         write_files (self, index, error) && release_source (self) &&
         muster_edit_target_finish (&self->target, options, error);
}

gboolean
muster_checkpoint_rename (const char *from, const char *const *names, const char *to,
                          const MusterEditOptions *options, MusterEditReport *report,
                          MusterBundleProgress progress, gpointer user_data, gint64 deadline_us,
                          GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, from, names, to);
  g_auto (Rename) self = {.from = from};
  MusterStorage *storage = muster_edit_storage (options);
  if (!muster_storage_check_path (storage, "checkpoint", from, error) ||
      !muster_storage_check_path (storage, "renamed checkpoint", to, error) ||
      !read_rules (&self, names, error) ||
      !muster_edit_work_begin (&self.work, options, progress, user_data, deadline_us, cancellable,
                               error))
    return FALSE;
  if (rename_all (&self, to, options, error)) {
    const MusterEditReport made = {.n_tensors = self.result->entries->len - self.result->n_parts,
                                   .bytes = self.bytes};
    muster_edit_report (&self.work, &made, report);
    return TRUE;
  }
  g_prefix_error (error, "Renaming into '%s': ", to);
  return FALSE;
}
