// SPDX-License-Identifier: Apache-2.0
/* An object store that stops answering, at every call of a backup and of a training state: each
 * operation ends by its deadline, and by its cancellable. One that is away for a call begins
 * nothing anew. */
#include "callbacks/backup.h"
#include "callbacks/worker_training_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/heard.h"
#include "tests/doubles/sharded_model.h"
#include "tests/doubles/stalled_store.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define BACKUP   "s3://bucket/backup"
#define METADATA BACKUP "/training_metadata.json"
#define STATE    "s3://bucket/state"
#define UNLISTED "s3://bucket/unlisted" /* a training state without the file that names one */

static const MusterShardedModel model = {.is_whole = TRUE};

/* A program whose own store stalls; its master's doesn't. */
typedef struct {
  StalledStore store;
  MusterMaster *master;
  MusterSession *session;
  MusterMetaGraph *meta_graph;
  MusterSessionProgram *program;
  MusterBackup *backup;
} World;

static void
end (gpointer world)
{
  World *self = world;
  g_clear_pointer (&self->backup, muster_backup_free);
  g_clear_pointer (&self->program, muster_session_program_free);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_object (&self->session);
  g_clear_object (&self->master);
  stalled_store_clear (&self->store);
}

static void
begin (gpointer world, MusterObjectStorage *store)
{
  World *self = world;
  stalled_store_init (&self->store, store);

  self->meta_graph = muster_sharded_model_new (&model);
  self->master = muster_local_master_new_with (MUSTER_STORAGE (self->store.masters), 0);
  self->session =
      muster_master_create_session (self->master, muster_meta_graph_graph (self->meta_graph), NULL,
                                    MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, self->session, 1, NULL));
  self->program = muster_session_program_new (self->meta_graph, self->session,
                                              MUSTER_STORAGE (self->store.process), NULL, NULL);
  const MusterBackupOptions options = {.backup_dir = BACKUP,
                                       .double_checkpoint = TRUE,
                                       .session_program = self->program,
                                       .storage = MUSTER_STORAGE (self->store.process)};
  self->backup = muster_backup_new (&options, NULL);
}

/* --- a backup's operations --- */

static gboolean
train_begin (World *self, MusterFitPosition *start, GError **error)
{
  const MusterFitCallback callback = muster_backup_callback (self->backup);
  return callback.train_begin (start, 3, self->store.deadline_us, self->store.cancellable,
                               callback.user_data, error);
}

static gboolean
save (World *self, GError **error)
{
  return muster_backup_save (self->backup, self->store.deadline_us, self->store.cancellable, error);
}

static gboolean
train (gpointer data, GError **error)
{
  World *self = data;
  const MusterFitCallback callback = muster_backup_callback (self->backup);
  MusterFitPosition start = {0, 0};
  if (!train_begin (self, &start, error))
    return FALSE;
  MUSTER_EXPECT_EQ (start.epoch, 2); /* or it would train all again */
  if (!callback.epoch_begin (2, self->store.deadline_us, self->store.cancellable,
                             callback.user_data, error) ||
      !save (self, error) ||
      !callback.train_end (self->store.deadline_us, self->store.cancellable, callback.user_data,
                           error))
    return FALSE;
  MusterStorageInfo info; /* or the next training would go on from it */
  MUSTER_EXPECT_FALSE (
      muster_storage_stat (MUSTER_STORAGE (self->store.masters), METADATA, &info, NULL));
  return TRUE;
}

static gboolean
find_position (gpointer data, GError **error)
{
  World *self = data;
  MusterFitPosition position = {0, 0};
  gboolean found = FALSE;
  if (!muster_backup_position (self->backup, 3, &found, &position, error))
    return FALSE;
  MUSTER_EXPECT_TRUE (found);
  MUSTER_EXPECT_EQ (position.epoch, 2);
  return TRUE;
}

/* --- a training state's operations --- */

static MusterWorkerTrainingState *
open_state (World *self, const char *directory, gboolean is_worker, GError **error)
{
  const MusterWorkerTrainingStateOptions options = {.directory = directory,
                                                    .is_worker = is_worker,
                                                    .workers_write = TRUE,
                                                    .storage =
                                                        MUSTER_STORAGE (self->store.process)};
  return muster_worker_training_state_new (self->meta_graph, self->session, &options, error);
}

static gboolean
back_up (World *self, const char *directory, gboolean is_worker, GError **error)
{
  g_autoptr (MusterWorkerTrainingState) state = open_state (self, directory, is_worker, error);
  return state != NULL &&
         muster_worker_training_state_back_up (state, 1, -1, self->store.deadline_us,
                                               self->store.cancellable, error);
}

static gboolean
back_up_chief (gpointer data, GError **error)
{
  return back_up (data, STATE, FALSE, error);
}

static gboolean
back_up_worker (gpointer data, GError **error)
{
  return back_up (data, STATE, TRUE, error);
}

static gboolean
restore (World *self, const char *directory, GError **error)
{
  g_autoptr (MusterWorkerTrainingState) state = open_state (self, directory, FALSE, error);
  gboolean is_restored = FALSE;
  if (!muster_worker_training_state_restore (state, &is_restored, self->store.deadline_us,
                                             self->store.cancellable, error))
    return FALSE;
  MUSTER_EXPECT_TRUE (is_restored);
  return TRUE;
}

static gboolean
restore_named (gpointer data, GError **error)
{
  return restore (data, STATE, error);
}

static gboolean
restore_unlisted (gpointer data, GError **error)
{
  return restore (data, UNLISTED, error);
}

static gboolean
delete_backup (gpointer data, GError **error)
{
  g_autoptr (MusterWorkerTrainingState) state = open_state (data, STATE, FALSE, error);
  return muster_worker_training_state_delete_backup (state, error);
}

static gboolean
end_training (gpointer data, GError **error)
{
  World *self = data;
  g_autoptr (MusterWorkerTrainingState) state = open_state (self, STATE, FALSE, error);
  const MusterFitCallback callback = muster_worker_training_state_callback (state);
  return callback.train_end (self->store.deadline_us, self->store.cancellable, callback.user_data,
                             error);
}

static const StalledOperation operations[] = {
    {"a training with a backup", train},
    {"find a backup's position", find_position},
    {"back up a chief", back_up_chief},
    {"back up a worker", back_up_worker},
    {"restore a training state", restore_named},
    {"restore one without a state file", restore_unlisted},
    {"delete a training state", delete_backup},
    {"the end of a training", end_training},
    {0},
};

static const StalledWorld worlds = {sizeof (World), begin, end};

/* --- what must hold --- */

static MusterObjectStorage *
fill (void)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  World world = {0};
  begin (&world, store);
  const MusterFitCallback callback = muster_backup_callback (world.backup);
  MusterFitPosition start = {0, 0};
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (train_begin (&world, &start, &error));
  for (gint64 epoch = 1; epoch <= 2; epoch++) {
    MUSTER_EXPECT_TRUE (
        callback.epoch_begin (epoch, world.store.deadline_us, NULL, callback.user_data, &error));
    MUSTER_EXPECT_TRUE (save (&world, &error));
  }
  MUSTER_EXPECT_TRUE (back_up (&world, STATE, FALSE, &error));
  MUSTER_EXPECT_TRUE (back_up (&world, UNLISTED, FALSE, &error));
  MUSTER_EXPECT_TRUE (
      muster_storage_remove (MUSTER_STORAGE (store), UNLISTED "/chief/checkpoint", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  end (&world);
  return g_steal_pointer (&store);
}

MUSTER_TEST (StalledStore, ends_every_call_of_backups_and_training_states)
{
  g_autoptr (MusterObjectStorage) filled = fill ();
  stalled_store_expect_ends (&worlds, filled, operations);
}

/* Goes on where the n-th call finds no store (0: each does), and returns the number of calls. */
static guint
go_on_without_call (MusterObjectStorage *filled, const StalledOperation *operation, guint n)
{
  g_autoptr (MusterObjectStorage) store = object_storage_copy (filled);
  g_autoptr (GError) error = NULL;
  World world = {0};
  MUSTER_TRACE ("%s without call %u", operation->name, n);
  begin (&world, store);
  object_storage_miss_at (world.store.process, n);

  const gboolean is_done =
      operation->call (&world, &error); /* which expects to find what is there */

  MUSTER_EXPECT_EQ (is_done, error == NULL);
  MUSTER_EXPECT_TRUE (error == NULL || strstr (error->message, "remove the directory") == NULL);
  const guint n_calls = object_storage_n_calls (world.store.process);
  end (&world);
  return n_calls;
}

/* An outage is neither an absence nor damage. */
MUSTER_TEST (AbsentStore, begins_nothing_anew_at_any_call_of_backups_and_training_states)
{
  static const StalledOperation going_on[] = {
      {"a training with a backup", train},
      {"find a backup's position", find_position},
      {"restore a training state", restore_named},
      {"restore one without a state file", restore_unlisted},
  };
  g_autoptr (MusterObjectStorage) filled = fill ();
  heard_begin (G_LOG_LEVEL_WARNING);
  for (gsize i = 0; i < G_N_ELEMENTS (going_on); i++) {
    const guint n_calls = go_on_without_call (filled, &going_on[i], 0);
    MUSTER_EXPECT_GT (n_calls, 3u);
    for (guint n = 1; n <= n_calls; n++)
      (void)go_on_without_call (filled, &going_on[i], n);
  }
  heard_end ();
}

/* As an older one wrote it: without records, the newer metadata and the ones before. As a damaged
 * one is left: records alone. */
MUSTER_TEST (AbsentStore, has_the_newest_position_of_a_backup_that_lacks_files)
{
  static const StalledOperation finding = {"find a backup's position", find_position};
  static const char *const lacking[][3] = {{METADATA ".1", METADATA ".2"},
                                           {METADATA, METADATA ".bkp"}};
  for (gsize i = 0; i < G_N_ELEMENTS (lacking); i++) {
    g_autoptr (MusterObjectStorage) filled = fill ();
    for (const char *const *path = lacking[i]; *path != NULL; path++)
      MUSTER_EXPECT_TRUE (muster_storage_remove (MUSTER_STORAGE (filled), *path, NULL));
    const guint n_calls = go_on_without_call (filled, &finding, 0);
    MUSTER_EXPECT_GT (n_calls, 3u);
    for (guint n = 1; n <= n_calls; n++)
      (void)go_on_without_call (filled, &finding, n);
  }
}
