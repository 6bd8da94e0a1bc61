// SPDX-License-Identifier: Apache-2.0
/* The metadata of a job in DIRECTORY/job.muster: which epoch counts. A file that is damaged or
 * another job's is an error with a remedy, never "no checkpoint". */
#include "jobs/job_metadata.h"

#include "base/log_private.h"
#include "jobs/job_epochs_private.h"

#include <string.h>

#define GROUP    "job"
#define VERSION  1
#define MAX_SIZE (64 * 1024)

struct _MusterJobStateFile {
  GObject parent;
  char *directory;        /* (owned) (nullable) until set_params */
  MusterStorage *storage; /* (owned) (nullable) */
  char **nodes;           /* (owned) (nullable) */
  gint64 chosen;          /* chosen by the user, not written yet; MUSTER_NO_EPOCH: none */
  char *action;           /* (owned) (nullable) */
  GPtrArray *stats;       /* (owned) (nullable) */
};

static void metadata_iface_init (MusterJobMetadataInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterJobStateFile, muster_job_state_file, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_JOB_METADATA,
                                                      metadata_iface_init))

MusterJobStateFile *
muster_job_state_file_new (void)
{
  return g_object_new (MUSTER_TYPE_JOB_STATE_FILE, NULL);
}

GPtrArray *
muster_job_state_file_stats (MusterJobStateFile *self, const char **action)
{
  g_return_val_if_fail (self != NULL, NULL);

  if (action != NULL)
    *action = self->action;
  return self->stats;
}

/* --- the file --- */

static MusterStorage *
storage_within (MusterJobStateFile *self, gint64 deadline_us, GCancellable *cancellable)
{
  return muster_storage_bound (self->storage, deadline_us, NULL, cancellable);
}

/* Returns TRUE if the call's deadline or its cancellable has ended it. */
static gboolean
is_interrupted (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
         g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static char *
path_of (MusterJobStateFile *self)
{
  return g_build_filename (self->directory, MUSTER_JOB_STATE_NAME, NULL);
}

static gboolean
check_params (MusterJobStateFile *self, GError **error)
{
  if (self->directory == NULL)
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                 "the state file has no checkpoint directory");
  return self->directory != NULL;
}

/* Its text; NULL without an error if there is no file. */
static char *
read_text (MusterStorage *storage, const char *path, GError **error)
{
  g_autoptr (GError) why = NULL;
  guint64 size = 0;
  MusterStorageInput *input = muster_storage_open (storage, path, &size, &why);
  if (input == NULL) {
    if (muster_error_to_wire (why) != MUSTER_ERROR_NOT_FOUND)
      g_propagate_error (error, g_steal_pointer (&why));
    return NULL;
  }
  g_autofree char *text = g_malloc (MAX_SIZE + 1);
  const gssize got = muster_storage_read_at (storage, input, 0, text, MAX_SIZE, error);
  muster_storage_close_input (storage, input);
  if (got < 0)
    return NULL;
  text[got] = '\0';
  return g_steal_pointer (&text);
}

/* Returns TRUE for a value that ends within an escape: GLib sets an error twice if another one
 * before it is invalid. */
static gboolean
ends_in_escape (GKeyFile *file, const char *key)
{
  g_autofree char *raw = g_key_file_get_value (file, GROUP, key, NULL);
  gsize n = 0;

  for (gsize i = raw != NULL ? strlen (raw) : 0; i > 0 && raw[i - 1] == '\\'; i--)
    n++;
  return n % 2 == 1;
}

/* A node outside the file's job has no checkpoint in it. */
static gboolean
check_nodes (MusterJobStateFile *self, GKeyFile *file, GError **error)
{
  if (ends_in_escape (file, "nodes"))
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the list of its nodes is cut off");
  g_auto (GStrv) nodes = g_key_file_get_string_list (file, GROUP, "nodes", NULL, NULL);

  for (char **node = self->nodes; nodes != NULL && node != NULL && *node != NULL; node++) {
    if (g_strv_contains ((const char *const *)nodes, *node))
      continue;
    g_autofree char *those = g_strjoinv ("', '", nodes);
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                        "it belongs to another job, with the nodes '%s' and without '%s'", those,
                        *node);
  }
  return TRUE;
}

static gboolean
parse (MusterJobStateFile *self, const char *text, gint64 *epoch, gboolean *finished,
       GError **error)
{
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autoptr (GError) failure = NULL;
  if (!g_utf8_validate (text, -1, NULL)) /* or messages would contain it */
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "not a text file");
  if (!g_key_file_load_from_data (file, text, strlen (text), G_KEY_FILE_NONE, error))
    return FALSE;
  const int version = g_key_file_get_integer (file, GROUP, "version", NULL);
  if (version > VERSION)
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "a newer muster wrote version %d", version);
  *epoch = g_key_file_get_int64 (file, GROUP, "epoch", &failure);
  if (failure != NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  *finished = g_key_file_get_boolean (file, GROUP, "finished", NULL);
  if (version != VERSION || *epoch < 0)
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "invalid version or epoch");
  return check_nodes (self, file, error);
}

/* The newest that every node has; MUSTER_NO_EPOCH: none. */
static gboolean
newest_epoch (MusterJobStateFile *self, MusterStorage *storage, gint64 *epoch, GError **error)
{
  return muster_job_newest_epoch (storage, self->directory, (const char *const *)self->nodes,
                                  MUSTER_NO_EPOCH, epoch, error);
}

/* Describes what the job would resume from without the file. */
static char *
remedy (MusterJobStateFile *self, MusterStorage *storage)
{
  gint64 epoch = MUSTER_NO_EPOCH;
  if (!newest_epoch (self, storage, &epoch, NULL))
    return g_strdup ("repair it");
  if (epoch == MUSTER_NO_EPOCH)
    return g_strdup ("no epoch exists for all nodes; remove the file to start again");
  return g_strdup_printf ("repair it, or remove it to resume at epoch %" G_GINT64_FORMAT
                          ", the newest that every node has",
                          epoch);
}

/* *epoch is MUSTER_NO_EPOCH if there is no file. */
static gboolean
read_state (MusterJobStateFile *self, MusterStorage *storage, gint64 *epoch, gboolean *finished,
            GError **error)
{
  g_autofree char *path = path_of (self);
  g_autoptr (GError) why = NULL;
  g_autofree char *text = read_text (storage, path, &why);

  *epoch = MUSTER_NO_EPOCH;
  *finished = FALSE;
  if (text == NULL && why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  if (text == NULL || parse (self, text, epoch, finished, &why))
    return TRUE;
  g_autofree char *what = remedy (self, storage);

  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "'%s' isn't this job's state: %s; %s", path,
                      why->message, what);
}

/* --- the interface --- */

static gboolean
state_file_set_params (MusterJobMetadata *metadata, const MusterJobParams *params,
                       GError **error G_GNUC_UNUSED)
{
  MusterJobStateFile *self = MUSTER_JOB_STATE_FILE (metadata);
  g_free (self->directory);
  self->directory = g_strdup (params->directory);
  g_set_object (&self->storage, params->storage);
  g_strfreev (self->nodes);
  self->nodes = g_strdupv ((char **)params->nodes);
  return TRUE;
}

/* Writes which epoch is the last. */
static gboolean
write_state (MusterJobStateFile *self, gint64 epoch, gboolean finished, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterStorage) storage = storage_within (self, deadline_us, cancellable);
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autofree char *path = path_of (self);
  gsize size;

  g_key_file_set_integer (file, GROUP, "version", VERSION);
  g_key_file_set_int64 (file, GROUP, "epoch", epoch);
  g_key_file_set_boolean (file, GROUP, "finished", finished);
  g_key_file_set_string_list (file, GROUP, "nodes", (const char *const *)self->nodes,
                              g_strv_length (self->nodes));
  g_autofree char *text = g_key_file_to_data (file, &size, NULL);
  if (!muster_storage_publish (storage, path, text, size, error))
    return FALSE;
  self->chosen = MUSTER_NO_EPOCH;
  return TRUE;
}

static gboolean
state_file_write (MusterJobMetadata *metadata, gint64 epoch, gboolean finished, gint64 deadline_us,
                  GCancellable *cancellable, GError **error)
{
  MusterJobStateFile *self = MUSTER_JOB_STATE_FILE (metadata);
  return check_params (self, error) &&
         write_state (self, epoch, finished, deadline_us, cancellable, error);
}

static gboolean
state_file_last_epoch (MusterJobMetadata *metadata, gint64 user_epoch, gint64 *epoch,
                       gboolean *finished, gint64 deadline_us, GCancellable *cancellable,
                       GError **error)
{
  MusterJobStateFile *self = MUSTER_JOB_STATE_FILE (metadata);
  gint64 known;
  gboolean has_finished;
  if (!check_params (self, error))
    return FALSE;
  g_autoptr (MusterStorage) storage = storage_within (self, deadline_us, cancellable);
  if (!read_state (self, storage, &known, &has_finished, error) ||
      (known == MUSTER_NO_EPOCH && user_epoch == MUSTER_NO_EPOCH &&
       !newest_epoch (self, storage, &known, error)))
    return FALSE;
  *epoch = user_epoch != MUSTER_NO_EPOCH ? user_epoch : known;
  *finished = has_finished && *epoch == known;
  self->chosen = *epoch != known ? user_epoch : MUSTER_NO_EPOCH;
  return TRUE;
}

static gboolean
state_file_accessible (MusterJobMetadata *metadata, gint64 epoch G_GNUC_UNUSED,
                       gboolean *accessible, gint64 deadline_us, GCancellable *cancellable,
                       GError **error)
{
  MusterJobStateFile *self = MUSTER_JOB_STATE_FILE (metadata);
  if (!check_params (self, error))
    return FALSE;
  g_autoptr (MusterStorage) storage = storage_within (self, deadline_us, cancellable);
  g_autoptr (GError) why = NULL;
  g_auto (GStrv) files = muster_storage_list (storage, self->directory, &why);
  *accessible = files != NULL;
  if (files != NULL || !is_interrupted (why))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

/* The nodes are at the epoch that the user chose: a later run without a choice continues from here,
 * not from a later epoch that existed before. */
static gboolean
keep_choice (MusterJobStateFile *self, GPtrArray *stats, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  const MusterJobStat *first = stats->len > 0 ? stats->pdata[0] : NULL;
  const gint64 epoch = self->chosen;
  if (epoch == MUSTER_NO_EPOCH || first == NULL || first->epoch != epoch)
    return TRUE;
  if (!check_params (self, error) ||
      !write_state (self, epoch, FALSE, deadline_us, cancellable, error)) {
    g_prefix_error (error, "Recording that the job resumes from epoch %" G_GINT64_FORMAT ": ",
                    epoch);
    return FALSE;
  }
  muster_log (G_LOG_LEVEL_MESSAGE, "restore", "MESSAGE",
              "the job resumes from epoch %" G_GINT64_FORMAT
              ", as requested; this epoch is now the latest ('%s/" MUSTER_JOB_STATE_NAME "')",
              epoch, self->directory);
  return TRUE;
}

static gboolean
state_file_report (MusterJobMetadata *metadata, const char *action, GPtrArray *stats,
                   gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterJobStateFile *self = MUSTER_JOB_STATE_FILE (metadata);
  g_free (self->action);
  self->action = g_strdup (action);
  g_clear_pointer (&self->stats, g_ptr_array_unref);
  self->stats = g_ptr_array_ref (stats);
  return !g_str_equal (action, "checkpoint_load") ||
         keep_choice (self, stats, deadline_us, cancellable, error);
}

static void
metadata_iface_init (MusterJobMetadataInterface *iface)
{
  iface->set_params = state_file_set_params;
  iface->write = state_file_write;
  iface->last_epoch = state_file_last_epoch;
  iface->accessible = state_file_accessible;
  iface->report = state_file_report;
}

static void
muster_job_state_file_finalize (GObject *object)
{
  MusterJobStateFile *self = MUSTER_JOB_STATE_FILE (object);
  g_free (self->directory);
  g_clear_object (&self->storage);
  g_strfreev (self->nodes);
  g_free (self->action);
  g_clear_pointer (&self->stats, g_ptr_array_unref);
  G_OBJECT_CLASS (muster_job_state_file_parent_class)->finalize (object);
}

static void
muster_job_state_file_init (MusterJobStateFile *self)
{
  self->chosen = MUSTER_NO_EPOCH;
}

static void
muster_job_state_file_class_init (MusterJobStateFileClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_state_file_finalize;
}
