// SPDX-License-Identifier: Apache-2.0
/* The side file `checkpoint.muster` in memory: finding and changing entries, reading and writing
 * the file. record_text.c has its format. A damaged file is renamed by the next writer, never
 * overwritten, and what is whole in it goes on. */
#include "checkpoint/state/checkpoint_record_private.h"

#include "base/error.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <math.h>
#include <string.h>

/* About 200,000 checkpoints; a larger file is refused. */
#define MAX_SIZE (64u << 20)

static void
side_file_clear (gpointer data)
{
  g_free (((MusterSideFile *)data)->name);
}

static void
side_metric_clear (gpointer data)
{
  g_free (((MusterSideMetric *)data)->name);
}

static void
side_rules_free (gpointer data)
{
  MusterSideRules *self = data;
  g_free (self->state_file);
  muster_keep_rules_clear (&self->rules);
  g_free (self);
}

static void
side_checkpoint_free (gpointer data)
{
  MusterSideCheckpoint *self = data;
  g_free (self->name);
  g_free (self->bad);
  g_free (self->run);
  g_free (self->state_file);
  g_free (self->preserved_for);
  g_free (self->pinned_for);
  g_array_unref (self->holds);
  g_array_unref (self->metrics);
  g_array_unref (self->files);
  g_free (self);
}

MusterCheckpointRecord *
muster_checkpoint_record_new (void)
{
  MusterCheckpointRecord *self = g_new0 (MusterCheckpointRecord, 1);
  self->final_step = -1;
  self->resumed_step = -1;
  self->goodput = (MusterGoodput)MUSTER_GOODPUT_INIT;
  self->checkpoints = g_ptr_array_new_with_free_func (side_checkpoint_free);
  self->rules = g_ptr_array_new_with_free_func (side_rules_free);
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  return self;
}

void
muster_checkpoint_record_free (MusterCheckpointRecord *self)
{
  if (self == NULL)
    return;
  g_free (self->chief);
  g_free (self->life);
  g_free (self->run);
  g_free (self->resumed_run);
  g_free (self->durable_dir);
  g_free (self->version);
  g_hash_table_unref (self->by_name);
  g_ptr_array_unref (self->checkpoints);
  g_ptr_array_unref (self->rules);
  g_free (self);
}

MusterSideCheckpoint *
muster_checkpoint_record_find (const MusterCheckpointRecord *self, const char *prefix)
{
  g_return_val_if_fail (self != NULL && prefix != NULL, NULL);
  g_autofree char *name = g_path_get_basename (prefix);
  return g_hash_table_lookup (self->by_name, name);
}

MusterSideCheckpoint *
muster_checkpoint_record_ensure (MusterCheckpointRecord *self, const char *prefix)
{
  g_return_val_if_fail (self != NULL && prefix != NULL, NULL);
  MusterSideCheckpoint *one = muster_checkpoint_record_find (self, prefix);
  if (one != NULL)
    return one;
  one = g_new0 (MusterSideCheckpoint, 1);
  one->name = g_path_get_basename (prefix);
  one->step = -1;
  one->holds = g_array_new (FALSE, FALSE, sizeof (double));
  one->metrics = g_array_new (FALSE, FALSE, sizeof (MusterSideMetric));
  g_array_set_clear_func (one->metrics, side_metric_clear);
  one->files = g_array_new (FALSE, FALSE, sizeof (MusterSideFile));
  g_array_set_clear_func (one->files, side_file_clear);
  g_ptr_array_add (self->checkpoints, one);
  g_hash_table_insert (self->by_name, one->name, one);
  return one;
}

void
muster_checkpoint_record_forget (MusterCheckpointRecord *self, const char *prefix)
{
  g_return_if_fail (self != NULL && prefix != NULL);
  MusterSideCheckpoint *one = muster_checkpoint_record_find (self, prefix);
  if (one == NULL)
    return;
  g_hash_table_remove (self->by_name, one->name);
  g_ptr_array_remove (self->checkpoints, one);
}

void
muster_checkpoint_record_rename (MusterCheckpointRecord *self, const char *from, const char *to)
{
  g_return_if_fail (self != NULL && from != NULL && to != NULL);
  g_autofree char *name = g_path_get_basename (to);
  MusterSideCheckpoint *one = muster_checkpoint_record_find (self, from);
  if (one == NULL || strcmp (one->name, name) == 0)
    return;
  muster_checkpoint_record_forget (self, name);
  g_hash_table_remove (self->by_name, one->name);
  g_free (one->name);
  one->name = g_steal_pointer (&name);
  g_hash_table_insert (self->by_name, one->name, one);
}

void
muster_side_checkpoint_add_file (MusterSideCheckpoint *self, const char *name, guint64 size,
                                 const guint32 *crc32c)
{
  g_return_if_fail (self != NULL && name != NULL);
  const MusterSideFile file = {.name = g_strdup (name),
                               .size = size,
                               .has_crc = crc32c != NULL,
                               .crc32c = crc32c != NULL ? *crc32c : 0};
  g_array_append_val (self->files, file);
}

MusterSideMetric *
muster_side_checkpoint_find_metric (const MusterSideCheckpoint *self, const char *name)
{
  for (guint i = 0; i < self->metrics->len; i++) {
    MusterSideMetric *one = &g_array_index (self->metrics, MusterSideMetric, i);
    if (strcmp (one->name, name) == 0)
      return one;
  }
  return NULL;
}

void
muster_side_checkpoint_set_metric (MusterSideCheckpoint *self, const char *name, double value)
{
  g_return_if_fail (self != NULL && name != NULL);
  MusterSideMetric *known = muster_side_checkpoint_find_metric (self, name);
  if (known != NULL) {
    known->value = value;
    return;
  }
  const MusterSideMetric added = {.name = g_strdup (name), .value = value};
  g_array_append_val (self->metrics, added);
}

double
muster_side_checkpoint_metric (const MusterSideCheckpoint *self, const char *name)
{
  const MusterSideMetric *known =
      self != NULL && name != NULL ? muster_side_checkpoint_find_metric (self, name) : NULL;
  return known != NULL ? known->value : NAN;
}

static MusterSideRules *
find_rules (const MusterCheckpointRecord *self, const char *state_file)
{
  for (guint i = 0; i < self->rules->len; i++) {
    MusterSideRules *one = self->rules->pdata[i];
    if (g_strcmp0 (one->state_file, state_file) == 0)
      return one;
  }
  return NULL;
}

double
muster_checkpoint_record_now (MusterClock *clock)
{
  return (double)muster_clock_wall_us (clock) / (double)MUSTER_SECOND;
}

gboolean
muster_side_checkpoint_is_held (const MusterSideCheckpoint *self, double now)
{
  for (guint i = 0; self != NULL && i < self->holds->len; i++)
    if (g_array_index (self->holds, double, i) > now)
      return TRUE;
  return FALSE;
}

gboolean
muster_side_checkpoint_is_left (const MusterSideCheckpoint *one,
                                const MusterCheckpointRecord *record)
{
  return one != NULL && one->run != NULL && record->run != NULL &&
         strcmp (one->run, record->run) != 0 && one->step > record->resumed_step;
}

gboolean
muster_side_checkpoint_is_foreign (const MusterSideCheckpoint *one,
                                   const MusterCheckpointRecord *record)
{
  if (one == NULL || !one->copied)
    return FALSE;
  if (one->run != NULL &&
      (g_strcmp0 (one->run, record->run) == 0 || g_strcmp0 (one->run, record->resumed_run) == 0))
    return FALSE;
  for (guint i = 0; i < record->checkpoints->len; i++) {
    const MusterSideCheckpoint *own = record->checkpoints->pdata[i];
    if (!own->copied && own->run != NULL && g_strcmp0 (one->run, own->run) == 0)
      return FALSE;
  }
  return TRUE;
}

const MusterKeepRules *
muster_checkpoint_record_rules (const MusterCheckpointRecord *self, const char *state_file)
{
  g_return_val_if_fail (self != NULL, NULL);
  const MusterSideRules *known = find_rules (self, state_file);
  return known != NULL ? &known->rules : NULL;
}

void
muster_checkpoint_record_set_rules (MusterCheckpointRecord *self, const char *state_file,
                                    const MusterKeepRules *rules)
{
  g_return_if_fail (self != NULL && rules != NULL);
  MusterSideRules *known = find_rules (self, state_file);
  if (known == NULL) {
    known = g_new0 (MusterSideRules, 1);
    known->state_file = g_strdup (state_file);
    g_ptr_array_add (self->rules, known);
  }
  muster_keep_rules_clear (&known->rules);
  muster_keep_rules_copy (rules, &known->rules);
}

static MusterStorage *
or_local (MusterStorage *storage)
{
  return storage != NULL ? storage : muster_default_storage ();
}

static GBytes *
read_text (MusterStorage *storage, const char *path, char **version, GError **error)
{
  MusterStorageInfo info = {0};
  /* A missing file has a version as well. */
  if (!muster_storage_stat (storage, path, &info, NULL) || info.size <= MAX_SIZE)
    return muster_storage_read_versioned (storage, path, version, error);
  muster_fail (error, MUSTER_ERROR_DATA_LOSS, "its %" G_GUINT64_FORMAT " bytes are too many",
               info.size);
  return NULL;
}

/* The text of a side file, as it was read; NULL: it couldn't be. */
typedef struct {
  GBytes *text;  /* (owned) (nullable) */
  char *version; /* (owned) (nullable) */
} Read;

static void
read_clear (Read *self)
{
  g_clear_pointer (&self->text, g_bytes_unref);
  g_free (self->version);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Read, read_clear)

static MusterCheckpointRecord *
parse_file (MusterStorage *storage, const char *path, Read *read, GError **error)
{
  g_autoptr (GError) why = NULL;
  MusterCheckpointRecord *self = NULL;
  read->text = read_text (or_local (storage), path, &read->version, &why);
  if (read->text != NULL) {
    gsize size;
    const char *data = g_bytes_get_data (read->text, &size);
    self = muster_checkpoint_record_parse (data, size, &why);
  } else if (muster_storage_failure_is_absent (why)) {
    self = muster_checkpoint_record_new ();
  }
  if (self != NULL)
    self->version = g_strdup (read->version);
  else
    g_propagate_prefixed_error (error, g_steal_pointer (&why), "The side file '%s': ", path);
  return self;
}

MusterCheckpointRecord *
muster_checkpoint_record_read (MusterStorage *storage, const char *directory, GError **error)
{
  muster_require (error, NULL, directory);
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_auto (Read) read = {0};
  return parse_file (storage, path, &read, error);
}

/* Pins all checkpoints that aren't being removed, and returns how many weren't: what was lost may
 * have pinned any of them, or have been the rules that kept it. */
static guint
pin_all (MusterCheckpointRecord *self, char *const *prefixes)
{
  guint n = 0;
  for (; *prefixes != NULL; prefixes++) {
    MusterSideCheckpoint *one = muster_checkpoint_record_find (self, *prefixes);
    if (one != NULL && (one->pinned || one->pending_delete))
      continue;
    one = muster_checkpoint_record_ensure (self, *prefixes);
    one->step = muster_checkpoint_step (*prefixes);
    one->pinned = TRUE;
    g_free (one->pinned_for);
    one->pinned_for = g_strdup ("the side file was damaged, which may have pinned it");
    n++;
  }
  return n;
}

/* Returns a name for the damaged file (transfer full) that replaces no earlier one. */
static char *
name_for_damaged (MusterStorage *storage, const char *directory, GError **error)
{
  g_auto (GStrv) files = muster_storage_list (or_local (storage), directory, error);
  g_autofree char *name = g_strdup (MUSTER_RECORD_FILE ".bad");

  if (files == NULL)
    return NULL;
  for (guint n = 2; g_strv_contains ((const char *const *)files, name); n++) {
    g_free (name);
    name = g_strdup_printf (MUSTER_RECORD_FILE ".bad-%u", n);
  }
  return g_build_filename (directory, name, NULL);
}

/* Keeps the damaged file beside the new one. One that is too large to be read is moved there. */
static gboolean
set_aside (MusterStorage *storage, const char *path, const char *quarantined, Read *damaged,
           GError **error)
{
  if (damaged->text != NULL)
    return muster_storage_copy (or_local (storage), path, quarantined, error);
  if (!muster_storage_move (or_local (storage), path, quarantined, error))
    return FALSE;
  g_auto (Read) absent = {0};
  g_autoptr (MusterCheckpointRecord) none = parse_file (storage, path, &absent, error);
  damaged->version = g_steal_pointer (&absent.version);
  return none != NULL;
}

/* The damaged file stays until the new one replaces it, if it is still the one that was read: a
 * writer that found none would begin anew. */
static MusterCheckpointRecord *
replace_damaged (MusterStorage *storage, const char *directory, Read *damaged, const char *why,
                 GError **error)
{
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_auto (GStrv) prefixes = muster_checkpoint_list (storage, directory, error);
  g_autofree char *quarantined =
      prefixes != NULL ? name_for_damaged (storage, directory, error) : NULL;
  gsize size = 0;
  const char *data = damaged->text != NULL ? g_bytes_get_data (damaged->text, &size) : NULL;
  if (quarantined == NULL || !set_aside (storage, path, quarantined, damaged, error))
    return NULL;
  g_autoptr (MusterCheckpointRecord) self = muster_checkpoint_record_salvage (data, size);
  const guint n_pinned = pin_all (self, prefixes);
  self->version = g_strdup (damaged->version);
  if (!muster_checkpoint_record_write (storage, directory, self, error))
    return NULL;
  muster_log (G_LOG_LEVEL_WARNING, "quarantine", "MESSAGE",
              "%s; it is kept as '%s' and replaced by its undamaged parts; %u of %u checkpoints "
              "there are pinned for it, as what is lost may have kept them: see `muster checkpoint "
              "unpin`",
              why, quarantined, n_pinned, g_strv_length (prefixes));
  return g_steal_pointer (&self);
}

MusterCheckpointRecord *
muster_checkpoint_record_read_to_write (MusterStorage *storage, const char *directory,
                                        GError **error)
{
  muster_require (error, NULL, directory);
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_auto (Read) read = {0};
  g_autoptr (GError) why = NULL;
  MusterCheckpointRecord *self = parse_file (storage, path, &read, &why);
  if (self == NULL && muster_error_is (why, MUSTER_ERROR_DATA_LOSS))
    return replace_damaged (storage, directory, &read, why->message, error);
  if (self == NULL)
    g_propagate_error (error, g_steal_pointer (&why));
  return self;
}

gboolean
muster_checkpoint_record_write (MusterStorage *storage, const char *directory,
                                MusterCheckpointRecord *self, GError **error)
{
  muster_require (error, FALSE, directory, self);
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_autofree char *text = muster_checkpoint_record_print (self);
  g_autofree char *version = g_steal_pointer (&self->version);
  if (muster_storage_replace (or_local (storage), path, text, strlen (text), version,
                              &self->version, error))
    return TRUE;
  self->version = g_steal_pointer (&version);
  g_prefix_error (error, "Writing the side file: ");
  return FALSE;
}
