// SPDX-License-Identifier: Apache-2.0
/* Saves and loads the variables of one node, with the list of their names, at once or from a
 * snapshot. */
#include "jobs/job_saver_private.h"

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "graph/graph_nodes_private.h"
#include "saver/async/async_saver.h"
#include "saver/async/snapshot_private.h"
#include "saver/builder/saver_builder.h"
#include "saver/save_how_private.h"

#include <string.h>

#define SAVEABLE      "blob_names" /* MUSTER_JOB_LIST and MUSTER_JOB_SAVE are its tensors */
#define MAX_NAMES     (1000 * 1000)
#define MAX_NAME_SIZE 4096

/* --- the list as a saveable --- */

#define TYPE_NAMES (muster_job_names_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobNames, muster_job_names, MUSTER, JOB_NAMES, GObject)

struct _MusterJobNames {
  GObject parent;
  MusterTensor *list; /* (owned) */
  MusterTensor *mark; /* (owned) */
};

static gboolean
names_copy_to_host (MusterSaveable *saveable, GPtrArray *tensors, GError **error G_GNUC_UNUSED)
{
  MusterJobNames *self = MUSTER_JOB_NAMES (saveable);
  muster_named_tensors_add (tensors, "list", self->list);
  muster_named_tensors_add (tensors, "save", self->mark);
  return TRUE;
}

static void
names_saveable_init (MusterSaveableInterface *iface)
{
  iface->copy_to_host = names_copy_to_host;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterJobNames, muster_job_names, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_SAVEABLE, names_saveable_init))

static void
muster_job_names_finalize (GObject *object)
{
  muster_tensor_unref (MUSTER_JOB_NAMES (object)->list);
  muster_tensor_unref (MUSTER_JOB_NAMES (object)->mark);
  G_OBJECT_CLASS (muster_job_names_parent_class)->finalize (object);
}

static void
muster_job_names_init (MusterJobNames *self G_GNUC_UNUSED)
{
}

static void
muster_job_names_class_init (MusterJobNamesClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_names_finalize;
}

/* --- the saver --- */

struct _MusterJobSaver {
  char **names;                /* (owned) */
  MusterSession *session;      /* (owned) its graph has the saver's nodes */
  MusterMetaGraph *meta_graph; /* (owned) (nullable) with the saver; NULL: there are no names */
  MusterStorage *storage;      /* (owned) (nullable) of the last save */
  /* from the first save on, if there are names: */
  MusterSaver *saver;      /* (owned) (nullable) for that storage */
  MusterJobNames *list;    /* (owned) (nullable) the saver's */
  MusterAsyncSaver *async; /* (owned) (nullable) */
  gboolean is_blocking;    /* the model can't be saved in the background */
  /* of a save that was staged and isn't finished: */
  MusterSaveTicket *ticket; /* (owned) (nullable) */
  char *list_path;          /* (owned) (nullable) without names */
  char *list_mark;          /* (owned) (nullable) */
};

/* The node's session may have been extended before: each saver's nodes have their own scope. */
static gboolean
build (MusterJobSaver *self, MusterClusterNode *node, gint64 deadline_us, GCancellable *cancellable,
       GError **error)
{
  static int n_built;
  MusterMetaGraph *model = muster_scaffold_meta_graph (node->scaffold);
  const MusterSaverInfo *own = muster_meta_graph_saver (model);
  g_autofree char *scope = g_strdup_printf ("muster_job_save_%d", g_atomic_int_add (&n_built, 1));
  MusterSaverBuild how = {.variables = (const char *const *)self->names,
                          .sharded = own != NULL && own->sharded,
                          .max_to_keep = -1,
                          .scope = scope};

  self->meta_graph = muster_saver_build (model, &how, error);
  if (self->meta_graph == NULL)
    return FALSE;
  g_autoptr (MusterGraph) extra = muster_graph_added (muster_meta_graph_graph (self->meta_graph),
                                                      muster_meta_graph_graph (model));
  return muster_session_extend (self->session, extra, deadline_us, cancellable, error);
}

MusterJobSaver *
muster_job_saver_new (MusterClusterNode *node, const char *const *names, gint64 deadline_us,
                      GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterJobSaver) self = g_new0 (MusterJobSaver, 1);
  self->names = g_strdupv ((char **)names);
  self->session = g_object_ref (node->session);
  if (*names != NULL && !build (self, node, deadline_us, cancellable, error))
    return NULL;
  return g_steal_pointer (&self);
}

void
muster_job_saver_free (MusterJobSaver *self)
{
  if (self == NULL)
    return;
  g_clear_pointer (&self->ticket, muster_save_ticket_unref);
  g_clear_object (&self->async);
  g_clear_object (&self->list);
  g_clear_object (&self->saver);
  g_clear_object (&self->storage);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_object (&self->session);
  g_free (self->list_path);
  g_free (self->list_mark);
  g_strfreev (self->names);
  g_free (self);
}

gboolean
muster_job_saver_is_for (MusterJobSaver *self, MusterClusterNode *node, const char *const *names)
{
  return self->session == node->session && g_strv_equal ((const char *const *)self->names, names);
}

static MusterSaver *
open_saver (MusterJobSaver *self, MusterStorage *storage, GError **error)
{
  const MusterSaverOptions options = {.no_meta_graph = TRUE, .storage = storage, .unlisted = TRUE};
  return muster_saver_new (self->meta_graph, &options, error);
}

static gboolean
check_directory (MusterStorage *storage, const char *directory, gint64 deadline_us,
                 GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterStorage) bound = muster_storage_bound (storage, deadline_us, NULL, cancellable);
  g_auto (GStrv) files = muster_storage_list (bound, directory, error);
  if (files == NULL)
    g_prefix_error (error, "The directory of the job's checkpoints: ");
  return files != NULL;
}

/* The saver of saves, with the list as one of the things that it saves. */
static gboolean
open_for_saves (MusterJobSaver *self, MusterStorage *storage, GError **error)
{
  if (self->saver != NULL && self->storage == storage)
    return TRUE;
  g_autoptr (MusterSaver) saver = open_saver (self, storage, error);
  g_autoptr (MusterJobNames) list = g_object_new (TYPE_NAMES, NULL);
  list->list = muster_tensor_new_strv ((const char *const *)self->names);
  if (saver == NULL || !muster_saver_add_saveable (saver, SAVEABLE, MUSTER_SAVEABLE (list),
                                                   MUSTER_SAVEABLE_REQUIRED, error))
    return FALSE;
  g_clear_object (&self->async);
  g_set_object (&self->storage, storage);
  g_set_object (&self->saver, saver);
  g_set_object (&self->list, list);
  return TRUE;
}

static gboolean
prepare_save (MusterJobSaver *self, MusterStorage *storage, const char *path, const char *mark,
              gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (path);

  if (!check_directory (storage, directory, deadline_us, cancellable, error) ||
      !open_for_saves (self, storage, error))
    return FALSE;
  g_clear_pointer (&self->list->mark, muster_tensor_unref);
  self->list->mark = muster_tensor_new_string (mark);
  return TRUE;
}

static gboolean
save_at_once (MusterJobSaver *self, const char *path, gint64 deadline_us, GCancellable *cancellable,
              GError **error)
{
  const MusterSaveHow how = {.prefix = path, .unlisted = TRUE};
  g_autofree char *directory = g_path_get_dirname (path);
  g_auto (MusterSaved) saved = {0};

  if (!muster_saver_save_for_ticket (self->saver, self->session, directory, -1, &how, NULL, &saved,
                                     deadline_us, cancellable, error))
    return FALSE;
  return !saved.skipped || muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "%s", saved.why);
}

/* A node without saved variables still has its list. */
static gboolean
save_list (MusterStorage *storage, const char *path, const char *mark, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  const char *const none[] = {NULL};
  g_autofree char *directory = g_path_get_dirname (path);
  g_autoptr (MusterTensor) list = muster_tensor_new_strv (none);
  g_autoptr (MusterTensor) save = muster_tensor_new_string (mark);

  if (!check_directory (storage, directory, deadline_us, cancellable, error))
    return FALSE;
  g_autoptr (MusterStorage) bound = muster_storage_bound (storage, deadline_us, NULL, cancellable);
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (bound, path, error);
  return writer != NULL && muster_bundle_writer_add (writer, MUSTER_JOB_LIST, list, error) &&
         muster_bundle_writer_add (writer, MUSTER_JOB_SAVE, save, error) &&
         muster_bundle_writer_finish (writer, error);
}

gboolean
muster_job_saver_save (MusterJobSaver *self, MusterStorage *storage, const char *path,
                       const char *mark, gint64 deadline_us, GCancellable *cancellable,
                       GError **error)
{
  if (self->meta_graph == NULL)
    return save_list (storage, path, mark, deadline_us, cancellable, error);
  return prepare_save (self, storage, path, mark, deadline_us, cancellable, error) &&
         save_at_once (self, path, deadline_us, cancellable, error);
}

/* --- in the background --- */

/* A model of which there can be no snapshot is saved instead. */
static gboolean
take_snapshot (MusterJobSaver *self, const char *path, gint64 deadline_us,
               GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (self->async == NULL)
    self->async = muster_async_saver_new (self->saver, self->session, MUSTER_SAVES_BLOCK, 0, error);
  if (self->async == NULL)
    return FALSE;
  self->ticket = muster_async_saver_write (self->async, path, deadline_us, cancellable, &failure);
  if (self->ticket != NULL)
    return TRUE;
  g_autofree char *what = g_strdup_printf ("'%s'", path);
  if (!muster_snapshot_must_block (failure, what, &self->is_blocking)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (self->is_blocking)
    g_clear_object (&self->async);
  return save_at_once (self, path, deadline_us, cancellable, error);
}

gboolean
muster_job_saver_stage (MusterJobSaver *self, MusterStorage *storage, const char *path,
                        const char *mark, gint64 deadline_us, GCancellable *cancellable,
                        GError **error)
{
  if (self->meta_graph == NULL) {
    g_set_object (&self->storage, storage);
    self->list_path = g_strdup (path);
    self->list_mark = g_strdup (mark);
    return TRUE;
  }
  if (!prepare_save (self, storage, path, mark, deadline_us, cancellable, error))
    return FALSE;
  return self->is_blocking ? save_at_once (self, path, deadline_us, cancellable, error)
                           : take_snapshot (self, path, deadline_us, cancellable, error);
}

static gboolean
finish_list (MusterJobSaver *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autofree char *path = g_steal_pointer (&self->list_path);
  g_autofree char *mark = g_steal_pointer (&self->list_mark);
  return path == NULL || save_list (self->storage, path, mark, deadline_us, cancellable, error);
}

gboolean
muster_job_saver_finish (MusterJobSaver *self, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  g_autoptr (MusterSaveTicket) ticket = g_steal_pointer (&self->ticket);
  g_autoptr (GError) failure = NULL;
  if (ticket == NULL)
    return finish_list (self, deadline_us, cancellable, error);
  if (muster_save_ticket_wait (ticket, MUSTER_SAVE_DURABLE, deadline_us, cancellable, &failure))
    return TRUE;
  /* the async saver reports an error once: here, not instead of the next save */
  if (muster_save_ticket_state (ticket) >= MUSTER_SAVE_DURABLE)
    (void)muster_async_saver_sync (self->async, deadline_us, cancellable, NULL);
  else
    muster_save_ticket_cancel (ticket);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

gboolean
muster_job_saver_load (MusterJobSaver *self, MusterStorage *storage, const char *path,
                       gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (self->meta_graph == NULL)
    return TRUE;
  g_autoptr (MusterSaver) saver = open_saver (self, storage, error);
  return saver != NULL &&
         muster_saver_restore (saver, self->session, &(MusterRestoreOptions){.prefix = path}, NULL,
                               deadline_us, cancellable, error);
}

/* --- lists --- */

/* A set of the strings of a tensor. */
static GHashTable *
set_of (MusterTensor *list)
{
  GHashTable *set = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (gint64 i = 0; i < muster_tensor_n_elements (list); i++) {
    const MusterString text = muster_tensor_string (list, i);
    g_hash_table_add (set, g_strndup (text.data, text.size));
  }
  return set;
}

/* Global variables; parts under the variable's name, if all parts have a value. */
static char **
names_with_values (MusterMetaGraph *meta_graph, MusterTensor *missing)
{
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);
  g_autoptr (GHashTable) without = set_of (missing);
  g_autoptr (GHashTable) left_out = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  for (int pass = 0; pass < 2; pass++)
    for (gsize i = 0; i < n; i++) {
      const MusterVariableInfo *it = &variables[i];
      const char *name = it->full_name != NULL ? it->full_name : it->name;
      if (it->is_local)
        continue;
      if (pass == 0 && g_hash_table_contains (without, it->name))
        g_hash_table_add (left_out, (gpointer)name);
      else if (pass == 1 && g_hash_table_add (left_out, (gpointer)name))
        g_strv_builder_add (names, name);
    }
  return g_strv_builder_end (names);
}

char **
muster_job_saver_list_session (MusterClusterNode *node, gint64 deadline_us,
                               GCancellable *cancellable, GError **error)
{
  g_autofree char *tensor = g_strconcat (node->missing_op, ":0", NULL);
  const char *fetches[] = {tensor};
  MusterStep step = {.fetches = fetches, .n_fetches = 1, .deadline_us = deadline_us};
  g_autoptr (MusterTensor) missing = NULL;

  if (!muster_session_run (node->session, &step, &missing, NULL, cancellable, error))
    return NULL;
  if (muster_tensor_dtype (missing) != MUSTER_STRING) {
    muster_fail (error, MUSTER_ERROR_INTERNAL,
                 "'%s' must return names; the master returned another type", tensor);
    return NULL;
  }
  return names_with_values (muster_scaffold_meta_graph (node->scaffold), missing);
}

/* A file's content is untrusted. */
static gboolean
is_name_list (MusterTensor *list)
{
  if (muster_tensor_dtype (list) != MUSTER_STRING || muster_tensor_n_elements (list) > MAX_NAMES)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (list); i++) {
    const MusterString name = muster_tensor_string (list, i);
    if (name.size == 0 || name.size > MAX_NAME_SIZE ||
        !g_utf8_validate_len (name.data, name.size, NULL))
      return FALSE;
  }
  return TRUE;
}

char **
muster_job_saver_list_file (MusterStorage *storage, const char *path, char **mark, GError **error)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, path, error);
  g_autoptr (MusterTensor) list =
      reader != NULL ? muster_bundle_reader_read (reader, MUSTER_JOB_LIST, error) : NULL;
  g_autoptr (MusterTensor) save =
      list != NULL ? muster_bundle_reader_read (reader, MUSTER_JOB_SAVE, error) : NULL;
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  if (save == NULL) {
    g_prefix_error (error, "The names of what the checkpoint of a job holds: ");
    return NULL;
  }
  g_autofree char *text = NULL;
  if (!is_name_list (list) || !muster_tensor_get_string (save, &text, NULL)) {
    muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                 "'%s': '" MUSTER_JOB_LIST "' isn't a list of names, or '" MUSTER_JOB_SAVE
                 "' isn't the mark of a save",
                 path);
    return NULL;
  }
  *mark = g_steal_pointer (&text);
  for (gint64 i = 0; i < muster_tensor_n_elements (list); i++) {
    const MusterString name = muster_tensor_string (list, i);
    g_autofree char *copy = g_strndup (name.data, name.size);
    g_strv_builder_add (names, copy);
  }
  return g_strv_builder_end (names);
}
