// SPDX-License-Identifier: Apache-2.0
/* A saver: its options, checked once, and what its parts share. Saving is in save.c, restoring
 * in restore.c, tiers and claims in tiered.c. Most functions here pass the call to the saver's
 * directory (saver/directory/). The estimate of a checkpoint's size is here, too. */
#include "saver/saver.h"

#include "base/require_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"
#include "graph/graph_nodes_private.h"
#include "saver/builder/keep_private.h"
#include "saver/builder/saver_complete_private.h"
#include "saver/saver_private.h"

#include <string.h>

#define DEFAULT_BASE_NAME "model.ckpt"
#define HOUR              3600.0

G_DEFINE_FINAL_TYPE (MusterSaver, muster_saver, G_TYPE_OBJECT)

/* Refuses a saver of the old format: after a save, muster looks for the files of V2. */
static gboolean
check_info (const MusterSaverInfo *info, MusterGraph *graph, GError **error)
{
  if (info == NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the meta graph has no SaverDef; export it with a Saver, or add one with "
                        "muster_meta_graph_complete ()");
  }
  const char *old = muster_saver_old_format (graph, info);
  if (old != NULL) {
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "the meta graph's saver is of the old format ('%s'), which muster doesn't "
                        "write; export it with a Saver of the V2 format, or replace it with "
                        "muster_meta_graph_complete ()",
                        old);
  }
  if (info->filename_tensor != NULL && *info->filename_tensor && info->save_tensor != NULL &&
      *info->save_tensor && info->restore_op != NULL && *info->restore_op)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "saver_def must specify the filename_tensor_name, save_tensor_name and "
                      "restore_op_name");
}

static gboolean
check_base_name (const char *name, GError **error)
{
  if (!*name || strchr (name, '/') != NULL) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid checkpoint name '%s' (use a name without '/')", name);
  }
  if (!muster_checkpoint_is_quarantined (name))
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "invalid checkpoint name '%s': this ending is reserved for checkpoints that were set aside",
      name);
}

static gboolean
check_latest_filename (const char *name, GError **error)
{
  if (name == NULL ||
      (*name && strchr (name, '/') == NULL && strcmp (name, MUSTER_RECORD_FILE) != 0))
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "'latest_filename' must not contain path components, nor be empty or '%s': '%s'",
      MUSTER_RECORD_FILE, name);
}

gboolean
muster_saver_check_session (MusterSaver *self, MusterSession *session, GError **error)
{
  return (MUSTER_IS_SAVER (self) && MUSTER_IS_SESSION (session)) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "saving and restoring need a %s",
                      MUSTER_IS_SAVER (self) ? "session" : "saver");
}

gboolean
muster_saver_check_directory (MusterSaver *self, const char *directory, GError **error)
{
  if (!MUSTER_IS_SAVER (self))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "no saver was given");
  return muster_storage_check_path (self->storage, "checkpoint directory", directory, error);
}

static void
set_rules (MusterCheckpointDirectory *self, const MusterSaverInfo *info,
           const MusterSaverOptions *options)
{
  double hours = options->keep_every_n_hours != 0 ? options->keep_every_n_hours
                                                  : (double)info->keep_every_n_hours;
  self->rules.newest = muster_max_to_keep_or (options->max_to_keep, info->max_to_keep);
  self->rules.every_s = hours > 0 ? hours * HOUR : 0;
  self->rules.by_last_kept = options->keep_rule == MUSTER_KEEP_MANAGER;
  self->rules.every_steps = options->keep_every_steps;
  self->rules.best = options->keep_best;
  self->absolute_paths = options->absolute_paths;
  self->latest_filename = g_strdup (options->latest_filename);
  self->unlisted = options->unlisted;
  self->adopt_unknown = options->adopt_unknown;
}

static gboolean
set_metric (MusterSaver *self, const MusterSaverOptions *options, GError **error)
{
  if (options->keep_best > 0 && options->metric == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "keep_best needs a metric, such as loss:min");
  return options->metric == NULL ||
         muster_keep_rules_parse_metric (&self->directory.rules, options->metric, error);
}

static gboolean
set_options (MusterSaver *self, const MusterSaverOptions *options, GError **error)
{
  set_rules (&self->directory, &self->info, options);
  if (!set_metric (self, options, error))
    return FALSE;
  if (!options->no_meta_graph)
    self->directory.meta_graph = g_bytes_ref (muster_meta_graph_bytes (self->meta_graph));
  self->no_probe = options->no_probe;
  self->gathered = options->gathered;
  self->pad_step_number = options->pad_step_number;
  self->save_timeout_us = options->save_timeout_us;
  self->storage = g_object_ref (options->storage ? options->storage : muster_default_storage ());
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->log = muster_save_log_new (self->clock);
  self->free_space = (MusterFreeSpace){.storage = self->storage,
                                       .clock = self->clock,
                                       .when_full = options->when_full,
                                       .paused = options->paused,
                                       .paused_data = options->paused_data};
  muster_checkpoint_directory_open (&self->directory, self->storage, self->clock);
  if (options->paused_owner != NULL)
    self->paused_owner = g_bytes_ref (options->paused_owner);
  self->tiers = muster_tiers_new (options->fast, options->n_fast, &self->directory, error);
  return self->tiers != NULL;
}

/* --- how large a checkpoint is --- */

static guint64
bytes_of (const MusterVariableInfo *variable)
{
  guint64 bytes = muster_dtype_size (variable->dtype);
  for (int i = 0; i < variable->n_dims; i++)
    if (variable->dims[i] < 0 || __builtin_mul_overflow (bytes, (guint64)variable->dims[i], &bytes))
      return 0; /* not known */
  return variable->n_dims >= 0 ? bytes : 0;
}

/* Collects the nodes that the save op needs. */
static GHashTable *
reach (MusterGraph *graph, const char *op)
{
  g_autoptr (GHashTable) reached = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) open = g_ptr_array_new ();
  g_autofree char *first = NULL;

  muster_graph_split_input (op, &first);
  const MusterNode *node = muster_graph_find_node (graph, first);
  if (node != NULL)
    g_ptr_array_add (open, (gpointer)node);
  while (open->len > 0) {
    node = g_ptr_array_remove_index_fast (open, open->len - 1);
    if (!g_hash_table_add (reached, (gpointer)node->name))
      continue;
    for (gsize i = 0; i < node->n_input; i++) {
      const MusterNode *input = muster_graph_node (graph, muster_node_input (node, i, NULL));
      if (!g_hash_table_contains (reached, input->name))
        g_ptr_array_add (open, (gpointer)input);
    }
  }
  return g_steal_pointer (&reached);
}

static guint64
count_variables (MusterSaver *self)
{
  g_autoptr (GHashTable) reached =
      reach (muster_meta_graph_graph (self->meta_graph), self->info.save_tensor);
  guint64 bytes = 0;
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (self->meta_graph, &n);

  for (gsize i = 0; i < n; i++)
    if (g_hash_table_contains (reached, variables[i].name) &&
        __builtin_add_overflow (bytes, bytes_of (&variables[i]), &bytes))
      return 0;
  return bytes < G_MAXINT64 ? bytes : 0;
}

/* Estimates the size of a checkpoint of the graph alone, as far as the graph tells. */
static guint64
count_graph (MusterSaver *self)
{
  guint64 bytes = MUSTER_SAVER_BESIDE_BYTES + (self->is_empty ? 0 : count_variables (self));
  if (self->directory.meta_graph != NULL)
    bytes += g_bytes_get_size (self->directory.meta_graph);
  return bytes;
}

guint64
muster_saver_estimate (MusterSaver *self, const GPtrArray *tensors)
{
  guint64 outside = 0;
  guint64 last = muster_saver_last_bytes (self);
  for (guint i = 0; tensors != NULL && i < tensors->len; i++)
    outside += muster_tensor_n_bytes (((const MusterNamedTensor *)tensors->pdata[i])->tensor);
  return MAX (self->graph_bytes + outside, last);
}

guint64
muster_saver_estimate_bytes (MusterSaver *self)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self), 0);
  return self->is_empty ? 0 : muster_saver_estimate (self, NULL);
}

/* --- the saver --- */

MusterSaver *
muster_saver_new (MusterMetaGraph *meta_graph, const MusterSaverOptions *options, GError **error)
{
  muster_require (error, NULL, meta_graph);

  static const MusterSaverOptions defaults;
  const MusterSaverInfo *info = muster_meta_graph_saver (meta_graph);
  if (options == NULL)
    options = &defaults;
  const char *base_name = options->base_name != NULL ? options->base_name : DEFAULT_BASE_NAME;
  const gboolean is_empty = info == NULL && options->allow_empty;
  if ((!is_empty && !check_info (info, muster_meta_graph_graph (meta_graph), error)) ||
      !check_base_name (base_name, error) ||
      !check_latest_filename (options->latest_filename, error) ||
      !muster_check_max_to_keep (options->max_to_keep, error))
    return NULL;

  muster_require_array (error, NULL, options->fast, options->n_fast);
  g_autoptr (MusterSaver) self = g_object_new (MUSTER_TYPE_SAVER, NULL);
  self->meta_graph = muster_meta_graph_ref (meta_graph);
  self->is_empty = is_empty;
  if (info != NULL)
    self->info = *info;
  self->directory.base_name = g_strdup (base_name);
  if (!set_options (self, options, error))
    return NULL;
  self->graph_bytes = count_graph (self);
  if (!is_empty)
    self->restore_plan = muster_restore_plan_new (muster_meta_graph_graph (meta_graph),
                                                  self->info.restore_op, &self->restore_flaw);
  return g_steal_pointer (&self);
}

void
muster_saved_clear (MusterSaved *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->prefix, g_free);
  g_clear_pointer (&self->why, g_free);
}

void
muster_saver_set_lease (MusterSaver *self, MusterLease *lease)
{
  g_return_if_fail (self != NULL);
  muster_checkpoint_directory_set_lease (&self->directory, lease);
  for (guint i = 0; i < self->tiers->n; i++)
    muster_checkpoint_directory_set_lease (&self->tiers->fast[i].checkpoints, lease);
}

gboolean
muster_saver_claim_directory (MusterSaver *self, const char *directory, gint64 deadline_us,
                              GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, directory);

  if (!muster_saver_check_directory (self, directory, error))
    return FALSE;
  return muster_saver_claim_tiers (self, directory, deadline_us, cancellable, error);
}

gboolean
muster_saver_is_taken_over (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_FAILED_PRECONDITION) &&
         strstr (error->message, MUSTER_TAKEN_OVER) != NULL;
}

char *
muster_saver_latest_checkpoint (MusterSaver *self, const char *directory, GError **error)
{
  muster_require (error, NULL, self, directory);

  if (!muster_saver_check_directory (self, directory, error))
    return NULL;
  g_autoptr (MusterStorage) storage = muster_saver_bound_storage (self);
  return muster_latest_checkpoint_named (storage, directory, self->directory.latest_filename,
                                         error);
}

char **
muster_saver_last_checkpoints (MusterSaver *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return muster_checkpoint_directory_list (&self->directory);
}

void
muster_saver_set_last_checkpoints (MusterSaver *self, const char *const *prefixes,
                                   const double *times)
{
  g_return_if_fail (self != NULL && prefixes != NULL);
  muster_checkpoint_directory_set_list (&self->directory, prefixes, times);
}

gboolean
muster_saver_set_last_checkpoints_with_times (MusterSaver *self, const char *const *prefixes,
                                              const double *times, gsize n_times, GError **error)
{
  muster_require (error, FALSE, self, prefixes);
  muster_require_array (error, FALSE, times, n_times);
  const gsize n = g_strv_length ((char **)prefixes);
  if (n_times > 0 && n_times != n) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%" G_GSIZE_FORMAT " times for %" G_GSIZE_FORMAT
                        " checkpoints (use one for each, or none)",
                        n_times, n);
  }
  muster_saver_set_last_checkpoints (self, prefixes, n_times > 0 ? times : NULL);
  return TRUE;
}

void
muster_saver_recover_last_checkpoints (MusterSaver *self, const char *const *prefixes)
{
  g_return_if_fail (self != NULL && prefixes != NULL);
  g_autoptr (MusterStorage) storage = muster_saver_bound_storage (self);
  muster_checkpoint_directory_recover_list (&self->directory, storage, prefixes);
}

gboolean
muster_saver_adopt_directory (MusterSaver *self, const char *directory, GError **error)
{
  muster_require (error, FALSE, self, directory);
  g_autoptr (MusterStorage) storage = muster_saver_bound_storage (self);
  return muster_saver_check_directory (self, directory, error) &&
         muster_checkpoint_directory_adopt (&self->directory, storage, directory, 0, error);
}

gboolean
muster_saver_adopt_for_job (MusterSaver *self, const char *directory, gboolean from_files,
                            GError **error)
{
  muster_require (error, FALSE, self, directory);
  g_autoptr (MusterStorage) storage = muster_saver_bound_storage (self);
  const MusterAdoptFlags flags = MUSTER_ADOPT_FOR_JOB | (from_files ? MUSTER_ADOPT_FROM_FILES : 0);
  return muster_saver_check_directory (self, directory, error) &&
         muster_checkpoint_directory_adopt (&self->directory, storage, directory, flags, error);
}

const char *
muster_saver_metric (MusterSaver *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->directory.rules.metric;
}

void
muster_saver_set_metric (MusterSaver *self, double value)
{
  g_return_if_fail (self != NULL);
  muster_save_log_set_metric (self->log, value);
}

void
muster_saver_set_interval (MusterSaver *self, gint64 interval_us)
{
  g_return_if_fail (MUSTER_IS_SAVER (self));
  muster_save_log_set_interval (self->log, interval_us);
}

void
muster_saver_status (MusterSaver *self, MusterSaveStatus *status)
{
  g_return_if_fail (MUSTER_IS_SAVER (self) && status != NULL);
  muster_save_log_read (self->log, status);
}

gboolean
muster_saver_is_empty (MusterSaver *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return self->is_empty;
}

MusterStorage *
muster_saver_bound_storage (MusterSaver *self)
{
  return muster_storage_bound_to_default (self->storage, self->clock);
}

MusterStorage *
muster_saver_storage (MusterSaver *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->storage;
}

gboolean
muster_saver_add_saveable (MusterSaver *self, const char *name, MusterSaveable *saveable,
                           MusterSaveableFlags flags, GError **error)
{
  muster_require (error, FALSE, self, name, saveable);
  if (self->is_empty) {
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "'%s' can't be saved: the model has no variables", name);
  }
  return muster_saveables_add (self->saveables, name, saveable, flags, error);
}

static void
clear_consistent_cut (MusterSaver *self)
{
  if (self->consistent_cut_destroy != NULL)
    self->consistent_cut_destroy (self->consistent_cut_data);
  self->consistent_cut = (MusterSaverConsistentCut){0};
  self->consistent_cut_data = NULL;
  self->consistent_cut_destroy = NULL;
}

void
muster_saver_set_consistent_cut (MusterSaver *self, const MusterSaverConsistentCut *consistent_cut,
                                 gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (MUSTER_IS_SAVER (self));

  clear_consistent_cut (self);
  if (consistent_cut != NULL)
    self->consistent_cut = *consistent_cut;
  self->consistent_cut_data = user_data;
  self->consistent_cut_destroy = destroy;
}

const char *
muster_saver_staging (MusterSaver *self, GError **error)
{
  g_mutex_lock (&self->lock);
  if (self->staging == NULL)
    self->staging = g_dir_make_tmp ("muster-staging-XXXXXX", error);
  const char *directory = self->staging;
  g_mutex_unlock (&self->lock);
  return directory;
}

static void
remove_staging (MusterSaver *self)
{
  if (self->staging != NULL)
    (void)muster_storage_remove (muster_local_storage (), self->staging, NULL);
  g_free (self->staging);
}

static void
muster_saver_finalize (GObject *object)
{
  MusterSaver *self = MUSTER_SAVER (object);
  clear_consistent_cut (self);
  remove_staging (self);
  muster_tiers_free (self->tiers);
  g_clear_pointer (&self->gathers, g_ptr_array_unref);
  muster_checkpoint_directory_clear (&self->directory);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_object (&self->storage);
  g_clear_pointer (&self->paused_owner, g_bytes_unref);
  g_clear_object (&self->clock);
  g_free (self->crash_loop_directory);
  g_free (self->life);
  muster_saveables_free (self->saveables);
  muster_probe_free (self->probe);
  muster_restore_plan_free (self->restore_plan);
  g_clear_error (&self->restore_flaw);
  g_clear_object (&self->save_unlocked);
  g_clear_pointer (&self->log, muster_save_log_unref);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_saver_parent_class)->finalize (object);
}

static void
muster_saver_class_init (MusterSaverClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_saver_finalize;
}

static void
muster_saver_init (MusterSaver *self)
{
  self->probe = muster_probe_new ();
  muster_checkpoint_directory_init (&self->directory);
  g_mutex_init (&self->lock);
  self->saveables = muster_saveables_new ();
}
