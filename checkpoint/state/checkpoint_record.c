// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_record.h"

#include "base/error.h"
#include "base/log.h"
#include "base/require.h"
#include "checkpoint/format/crc32c.h"
#include "checkpoint/store/storage_failure.h"
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
side_checkpoint_free (gpointer data)
{
  MusterSideCheckpoint *self = data;
  g_free (self->name);
  g_free (self->bad);
  g_free (self->run);
  g_free (self->state_file);
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

static MusterStorage *
or_local (MusterStorage *storage)
{
  return storage != NULL ? storage : muster_default_storage ();
}

static GBytes *
read_text (MusterStorage *storage, const char *path, char **version, GError **error)
{
  MusterStorageInfo info = {0};
  /* A file that isn't there has a version as well. */
  if (!muster_storage_stat (storage, path, &info, NULL) || info.size <= MAX_SIZE)
    return muster_storage_read_versioned (storage, path, version, error);
  muster_fail (error, MUSTER_ERROR_DATA_LOSS, "its %" G_GUINT64_FORMAT " bytes are too many",
               info.size);
  return NULL;
}

MusterCheckpointRecord *
muster_checkpoint_record_read (MusterStorage *storage, const char *directory, GError **error)
{
  muster_require (error, NULL, directory);
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_autoptr (GError) why = NULL;
  g_autofree char *version = NULL;
  g_autoptr (GBytes) text = read_text (or_local (storage), path, &version, &why);
  MusterCheckpointRecord *self = NULL;
  if (text != NULL) {
    gsize size;
    const char *data = g_bytes_get_data (text, &size);
    self = muster_checkpoint_record_parse (data, size, &why);
  } else if (muster_storage_failure_is_absent (why)) {
    self = muster_checkpoint_record_new ();
  }
  if (self != NULL)
    self->version = g_steal_pointer (&version);
  else
    g_propagate_prefixed_error (error, g_steal_pointer (&why), "The side file '%s': ", path);
  return self;
}

MusterCheckpointRecord *
muster_checkpoint_record_read_to_write (MusterStorage *storage, const char *directory,
                                        GError **error)
{
  muster_require (error, NULL, directory);
  g_autoptr (GError) why = NULL;
  MusterCheckpointRecord *self = muster_checkpoint_record_read (storage, directory, &why);
  if (self != NULL || !muster_error_is (why, MUSTER_ERROR_DATA_LOSS)) {
    if (why != NULL)
      g_propagate_error (error, g_steal_pointer (&why));
    return self;
  }
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_autofree char *quarantined = g_strconcat (path, ".bad", NULL);
  if (!muster_storage_move (or_local (storage), path, quarantined, error))
    return NULL;
  muster_log (G_LOG_LEVEL_WARNING, "quarantine", "MESSAGE",
              "%s; it was renamed '%s' and replaced by a new one (checkpoints don't need it)",
              why->message, quarantined);
  return muster_checkpoint_record_read (storage, directory, error);
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

/* The side file's text. Its first line holds the checksum of the rest, so that a flipped bit can't
 * pass for another epoch. Names are escaped as in a URI: a file's name is any bytes, a GKeyFile's
 * value is UTF-8. */

#define VERSION 1
/* Leaves space to count further. */
#define MAX_NUMBER (G_MAXINT64 - (1 << 20))
/* A thousand years: sums don't overflow. */
#define MOST_SPENT_US (G_GINT64_CONSTANT (31557600000) * MUSTER_SECOND)
#define DIRECTORY     "directory"
#define CHECKPOINT    "checkpoint "
#define PLAIN_IN_URI  "!$&'()*+,:=@/"

static char *
first_line (const char *body, gsize size)
{
  return g_strdup_printf ("# muster %08x\n", muster_crc32c_extend (0, body, size));
}

static char *
escape (const char *name)
{
  return g_uri_escape_string (name, PLAIN_IN_URI, TRUE);
}

static void
set_uint64 (GKeyFile *file, const char *group, const char *key, guint64 value)
{
  g_key_file_set_uint64 (file, group, key, value);
}

static void
set_name (GKeyFile *file, const char *group, const char *key, const char *name)
{
  if (name == NULL)
    return;
  g_autofree char *escaped = escape (name);
  g_key_file_set_value (file, group, key, escaped);
}

/* A text for messages. */
static void
set_words (GKeyFile *file, const char *group, const char *key, const char *words)
{
  if (words == NULL)
    return;
  g_autofree char *valid = g_utf8_make_valid (words, -1);
  g_key_file_set_string (file, group, key, valid);
}

static void
set_flag (GKeyFile *file, const char *group, const char *key, gboolean flag)
{
  if (flag)
    g_key_file_set_boolean (file, group, key, TRUE);
}

static void
set_files (GKeyFile *file, const char *group, const GArray *files)
{
  g_autoptr (GString) value = g_string_new (NULL);
  for (guint i = 0; i < files->len; i++) {
    const MusterSideFile *one = &g_array_index (files, MusterSideFile, i);
    g_autofree char *name = escape (one->name);
    g_string_append_printf (value, "%s%s %" G_GUINT64_FORMAT, i > 0 ? ";" : "", name, one->size);
    if (one->has_crc)
      g_string_append_printf (value, " %08x", one->crc32c);
  }
  if (value->len > 0)
    g_key_file_set_value (file, group, "files", value->str);
}

/* "goodput-training" */
static char *
goodput_key (guint use)
{
  return g_strdup_printf ("goodput-%s", muster_time_use_name ((MusterTimeUse)use));
}

static void
print_checkpoint (GKeyFile *file, const char *group, const MusterSideCheckpoint *one)
{
  set_name (file, group, "name", one->name);
  g_key_file_set_int64 (file, group, "step", one->step);
  g_key_file_set_int64 (file, group, "epoch", one->epoch);
  set_name (file, group, "run", one->run);
  g_key_file_set_double (file, group, "time", one->time);
  set_uint64 (file, group, "bytes", one->bytes);
  set_flag (file, group, "verified", one->verified);
  set_flag (file, group, "preserved", one->preserved);
  set_flag (file, group, "copied", one->copied);
  set_flag (file, group, "doomed", one->pending_delete);
  if (one->deaths > 0)
    set_uint64 (file, group, "deaths", one->deaths);
  set_words (file, group, "bad", one->bad);
  set_name (file, group, "state-file", one->state_file);
  set_files (file, group, one->files);
}

static void
print_goodput (GKeyFile *file, const MusterCheckpointRecord *self)
{
  const MusterGoodput *goodput = &self->goodput;
  if (goodput->began_us == 0)
    return;
  g_key_file_set_int64 (file, DIRECTORY, "goodput-began", goodput->began_us);
  g_key_file_set_double (file, DIRECTORY, "goodput-time", self->goodput_time);
  for (guint i = 0; i < MUSTER_N_TIMES; i++) {
    g_autofree char *key = goodput_key (i);
    g_key_file_set_int64 (file, DIRECTORY, key, goodput->spent_us[i]);
  }
  set_uint64 (file, DIRECTORY, "goodput-restarts", goodput->n_restarts);
  set_uint64 (file, DIRECTORY, "goodput-failures", goodput->n_failures);
  set_uint64 (file, DIRECTORY, "goodput-steps-again", goodput->steps_again);
  g_key_file_set_int64 (file, DIRECTORY, "goodput-step", goodput->step);
  set_flag (file, DIRECTORY, "goodput-least", goodput->is_least);
  g_key_file_set_int64 (file, DIRECTORY, "goodput-end", goodput->end);
}

char *
muster_checkpoint_record_print (const MusterCheckpointRecord *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_key_file_set_int64 (file, DIRECTORY, "version", VERSION);
  g_key_file_set_int64 (file, DIRECTORY, "epoch", self->epoch);
  set_words (file, DIRECTORY, "chief", self->chief);
  set_flag (file, DIRECTORY, "over", self->over);
  g_key_file_set_int64 (file, DIRECTORY, "final-step", self->final_step);
  g_key_file_set_double (file, DIRECTORY, "last-preserved", self->last_preserved);
  set_name (file, DIRECTORY, "life", self->life);
  set_name (file, DIRECTORY, "run", self->run);
  set_name (file, DIRECTORY, "resumed-run", self->resumed_run);
  if (self->resumed_step >= 0)
    g_key_file_set_int64 (file, DIRECTORY, "resumed-step", self->resumed_step);
  set_name (file, DIRECTORY, "durable-dir", self->durable_dir);
  print_goodput (file, self);
  for (guint i = 0; i < self->checkpoints->len; i++) {
    g_autofree char *group = g_strdup_printf (CHECKPOINT "%u", i);
    print_checkpoint (file, group, self->checkpoints->pdata[i]);
  }
  gsize size;
  g_autofree char *body = g_key_file_to_data (file, &size, NULL);
  g_autofree char *line = first_line (body, size);
  return g_strconcat (line, body, NULL);
}

static gboolean
refuse_key (GError **error, const char *group, const char *key, const char *what)
{
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "in [%s], '%s' is %s", group, key, what);
}

static gboolean
has (GKeyFile *file, const char *group, const char *key)
{
  return g_key_file_has_key (file, group, key, NULL);
}

/* Each leaves the default where the key is missing. */

static gboolean
get_int64 (GKeyFile *file, const char *group, const char *key, gint64 least, gint64 *value,
           GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  return text == NULL || g_ascii_string_to_signed (text, 10, least, MAX_NUMBER, value, NULL) ||
         refuse_key (error, group, key, "not a number");
}

static gboolean
get_uint64 (GKeyFile *file, const char *group, const char *key, guint64 most, guint64 *value,
            GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  return text == NULL || g_ascii_string_to_unsigned (text, 10, 0, most, value, NULL) ||
         refuse_key (error, group, key, "not a count");
}

static gboolean
get_time (GKeyFile *file, const char *group, const char *key, double *value, GError **error)
{
  if (!has (file, group, key))
    return TRUE;
  const double time = g_key_file_get_double (file, group, key, NULL);
  if (!isfinite (time) || time < 0)
    return refuse_key (error, group, key, "not a time");
  *value = time;
  return TRUE;
}

static gboolean
get_flag (GKeyFile *file, const char *group, const char *key, gboolean *value, GError **error)
{
  if (!has (file, group, key))
    return TRUE;
  g_autoptr (GError) why = NULL;
  *value = g_key_file_get_boolean (file, group, key, &why);
  return why == NULL || refuse_key (error, group, key, "neither true nor false");
}

static gboolean
get_words (GKeyFile *file, const char *group, const char *key, char **value, GError **error)
{
  if (!has (file, group, key))
    return TRUE;
  *value = g_key_file_get_string (file, group, key, NULL);
  return *value != NULL || refuse_key (error, group, key, "not a string");
}

/* A base name, since paths are built from it, and files are removed by them. */
static gboolean
get_name (GKeyFile *file, const char *group, const char *key, char **value, GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  if (text == NULL)
    return TRUE;
  g_autofree char *name = g_uri_unescape_string (text, "/");
  if (name == NULL || *name == '\0' || strchr (name, '/') != NULL || strcmp (name, ".") == 0 ||
      strcmp (name, "..") == 0)
    return refuse_key (error, group, key, "not a file name");
  *value = g_steal_pointer (&name);
  return TRUE;
}

static gboolean
get_path (GKeyFile *file, const char *group, const char *key, char **value, GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, key, NULL);
  if (text == NULL)
    return TRUE;
  *value = g_uri_unescape_string (text, NULL);
  return *value != NULL || refuse_key (error, group, key, "not a path");
}

static gboolean
parse_file (const char *text, MusterSideCheckpoint *one)
{
  g_auto (GStrv) words = g_strsplit (text, " ", 4);
  const guint n = g_strv_length (words);
  guint64 size, crc = 0;
  if (n < 2 || n > 3 || !g_ascii_string_to_unsigned (words[1], 10, 0, G_MAXUINT64, &size, NULL) ||
      (n == 3 && !g_ascii_string_to_unsigned (words[2], 16, 0, G_MAXUINT32, &crc, NULL)))
    return FALSE;
  g_autofree char *name = g_uri_unescape_string (words[0], "/");
  if (name == NULL || *name != '.' || strchr (name, '/') != NULL)
    return FALSE;
  const guint32 crc32c = (guint32)crc;
  muster_side_checkpoint_add_file (one, name, size, n == 3 ? &crc32c : NULL);
  return TRUE;
}

static gboolean
get_files (GKeyFile *file, const char *group, MusterSideCheckpoint *one, GError **error)
{
  g_autofree char *text = g_key_file_get_value (file, group, "files", NULL);
  g_auto (GStrv) files = text != NULL ? g_strsplit (text, ";", -1) : NULL;
  for (gsize i = 0; files != NULL && files[i] != NULL; i++)
    if (!parse_file (files[i], one))
      return refuse_key (error, group, "files", "not a list of files");
  return TRUE;
}

static gboolean
parse_checkpoint (MusterCheckpointRecord *self, GKeyFile *file, const char *group, GError **error)
{
  g_autofree char *name = NULL;
  if (!get_name (file, group, "name", &name, error))
    return FALSE;
  if (name == NULL)
    return refuse_key (error, group, "name", "missing");
  if (muster_checkpoint_record_find (self, name) != NULL)
    return refuse_key (error, group, "name", "that of another checkpoint");
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (self, name);
  guint64 deaths = 0;
  if (!get_int64 (file, group, "step", -1, &one->step, error) ||
      !get_int64 (file, group, "epoch", 0, &one->epoch, error) ||
      !get_name (file, group, "run", &one->run, error) ||
      !get_time (file, group, "time", &one->time, error) ||
      !get_uint64 (file, group, "bytes", G_MAXUINT64, &one->bytes, error) ||
      !get_flag (file, group, "verified", &one->verified, error) ||
      !get_flag (file, group, "preserved", &one->preserved, error) ||
      !get_flag (file, group, "copied", &one->copied, error) ||
      !get_flag (file, group, "doomed", &one->pending_delete, error) ||
      !get_uint64 (file, group, "deaths", G_MAXUINT, &deaths, error) ||
      !get_words (file, group, "bad", &one->bad, error) ||
      !get_name (file, group, "state-file", &one->state_file, error))
    return FALSE;
  one->deaths = (guint)deaths;
  return get_files (file, group, one, error);
}

static gboolean
parse_goodput (MusterCheckpointRecord *self, GKeyFile *file, GError **error)
{
  MusterGoodput *goodput = &self->goodput;
  gint64 end = MUSTER_RUN_UNENDED;
  if (!get_int64 (file, DIRECTORY, "goodput-began", 0, &goodput->began_us, error) ||
      !get_time (file, DIRECTORY, "goodput-time", &self->goodput_time, error) ||
      !get_uint64 (file, DIRECTORY, "goodput-restarts", MAX_NUMBER, &goodput->n_restarts, error) ||
      !get_uint64 (file, DIRECTORY, "goodput-failures", MAX_NUMBER, &goodput->n_failures, error) ||
      !get_uint64 (file, DIRECTORY, "goodput-steps-again", MAX_NUMBER, &goodput->steps_again,
                   error) ||
      !get_int64 (file, DIRECTORY, "goodput-step", -1, &goodput->step, error) ||
      !get_flag (file, DIRECTORY, "goodput-least", &goodput->is_least, error) ||
      !get_int64 (file, DIRECTORY, "goodput-end", MUSTER_RUN_UNENDED, &end, error))
    return FALSE;
  goodput->end = (MusterRunEnd)MIN (end, MUSTER_RUN_FINISHED);
  for (guint i = 0; i < MUSTER_N_TIMES; i++) {
    g_autofree char *key = goodput_key (i);
    if (!get_int64 (file, DIRECTORY, key, 0, &goodput->spent_us[i], error))
      return FALSE;
    goodput->spent_us[i] = MIN (goodput->spent_us[i], MOST_SPENT_US);
  }
  return TRUE;
}

static gboolean
parse_directory (MusterCheckpointRecord *self, GKeyFile *file, GError **error)
{
  gint64 version = 0;
  if (!get_int64 (file, DIRECTORY, "version", 1, &version, error))
    return FALSE;
  if (version > VERSION) {
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "it was written by a newer muster (version %" G_GINT64_FORMAT
                        " of the file; this one knows %d)",
                        version, VERSION);
  }
  return get_int64 (file, DIRECTORY, "epoch", 0, &self->epoch, error) &&
         get_words (file, DIRECTORY, "chief", &self->chief, error) &&
         get_flag (file, DIRECTORY, "over", &self->over, error) &&
         get_int64 (file, DIRECTORY, "final-step", -1, &self->final_step, error) &&
         get_time (file, DIRECTORY, "last-preserved", &self->last_preserved, error) &&
         get_name (file, DIRECTORY, "life", &self->life, error) &&
         get_name (file, DIRECTORY, "run", &self->run, error) &&
         get_name (file, DIRECTORY, "resumed-run", &self->resumed_run, error) &&
         get_int64 (file, DIRECTORY, "resumed-step", -1, &self->resumed_step, error) &&
         get_path (file, DIRECTORY, "durable-dir", &self->durable_dir, error) &&
         parse_goodput (self, file, error);
}

/* The text after the first line, if that is valid. */
static const char *
check_first_line (const char *text, gsize size)
{
  const char *end = size > 0 ? memchr (text, '\n', size) : NULL;
  if (end == NULL || memchr (text, '\0', size) != NULL)
    return NULL;
  const char *body = end + 1;
  g_autofree char *line = first_line (body, size - (gsize)(body - text));
  return strlen (line) == (gsize)(body - text) && memcmp (line, text, strlen (line)) == 0 ? body
                                                                                          : NULL;
}

MusterCheckpointRecord *
muster_checkpoint_record_parse (const char *text, gsize size, GError **error)
{
  muster_require_array (error, NULL, text, size);
  muster_require_array (error, NULL, text, size);
  muster_require_array (error, NULL, text, size);
  const char *body = check_first_line (text, size);
  if (body == NULL) {
    muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the checksum in its first line doesn't match");
    return NULL;
  }
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autoptr (GError) why = NULL;
  if (!g_key_file_load_from_data (file, body, size - (gsize)(body - text), G_KEY_FILE_NONE, &why)) {
    muster_fail (error, MUSTER_ERROR_DATA_LOSS, "%s", why->message);
    return NULL;
  }
  g_autoptr (MusterCheckpointRecord) self = muster_checkpoint_record_new ();
  if (!parse_directory (self, file, error))
    return NULL;
  g_auto (GStrv) groups = g_key_file_get_groups (file, NULL);
  for (gsize i = 0; groups[i] != NULL; i++)
    if (g_str_has_prefix (groups[i], CHECKPOINT) &&
        !parse_checkpoint (self, file, groups[i], error))
      return NULL;
  return g_steal_pointer (&self);
}
