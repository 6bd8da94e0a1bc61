// SPDX-License-Identifier: Apache-2.0
/* An object store that stops answering, at every call of every operation: each one ends by the
 * operation's deadline, and by its cancellable. */
#include "base/error.h"
#include "checkpoint/state/checkpoint_mark.h"
#include "checkpoint/state/quarantine.h"
#include "saver/probe_private.h"
#include "saver/restore.h"
#include "tests/doubles/stalled_store.h"
#include "tests/gtest_shim.h"
#include "tests/saver/model_life.h"

#define DIRECTORY "s3://bucket/run"
#define PREFIX    DIRECTORY "/model.ckpt-7"

static const MusterShardedModel model = {.rows = 2};

/* A chief whose own store stalls; its master writes into the same one, which answers that. */
typedef struct {
  StalledStore store;
  MusterStorage *storage; /* (not owned) that of process */
  ModelLife life;
} Chief;

static void
end (gpointer chief)
{
  Chief *self = chief;
  model_life_clear (&self->life);
  stalled_store_clear (&self->store);
}

static void
begin (gpointer chief, MusterObjectStorage *store)
{
  Chief *self = chief;
  stalled_store_init (&self->store, store);
  self->storage = MUSTER_STORAGE (self->store.process);
  const MusterSaverOptions options = {.storage = self->storage,
                                      .max_to_keep = 2,
                                      .keep_best = 1,
                                      .metric = "loss:min",
                                      .save_timeout_us = 3000 * MUSTER_SECOND};
  self->life = model_life_new (&model, &options, MUSTER_STORAGE (self->store.masters));
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, self->life.session, 1, NULL));
  model_life_claim (&self->life);
}

static gboolean
save_step (Chief *self, gint64 step, GError **error)
{
  muster_saver_set_metric (self->life.saver, 1.0 / (double)step);
  g_autofree char *prefix =
      muster_saver_save (self->life.saver, self->life.session, DIRECTORY, step,
                         self->store.deadline_us, self->store.cancellable, error);
  return prefix != NULL;
}

/* --- the operations --- */

static gboolean
save (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_saver_adopt_directory (self->life.saver, DIRECTORY, error) &&
         save_step (self, 9, error);
}

static gboolean
save_in_background (gpointer data, GError **error)
{
  Chief *self = data;
  g_autoptr (MusterAsyncSaver) async =
      muster_async_saver_new (self->life.saver, self->life.session, MUSTER_SAVES_BLOCK, 0, error);
  g_autoptr (MusterSaveTicket) ticket = muster_async_saver_save (
      async, DIRECTORY, 9, self->store.deadline_us, self->store.cancellable, error);
  return ticket != NULL &&
         muster_async_saver_sync (async, self->store.deadline_us, self->store.cancellable, error);
}

static gboolean
restore_with (Chief *self, const MusterRestoreOptions *options, GError **error)
{
  g_auto (MusterRestored) restored = {0};
  return muster_saver_restore (self->life.saver, self->life.session, options, &restored,
                               self->store.deadline_us, self->store.cancellable, error);
}

static gboolean
restore (gpointer data, GError **error)
{
  Chief *self = data;
  const MusterRestoreOptions options = {
      .directory = DIRECTORY, .count_deaths = TRUE, .fall_back_to_files = TRUE};
  return restore_with (self, &options, error) && muster_saver_mark_good (self->life.saver, error);
}

static gboolean
restore_prefix (gpointer data, GError **error)
{
  Chief *self = data;
  const MusterRestoreOptions options = {.prefix = PREFIX};
  return restore_with (self, &options, error);
}

static gboolean
check_compatible (gpointer data, GError **error)
{
  Chief *self = data;
  const MusterRestoreOptions options = {.directory = DIRECTORY};
  gboolean found;
  return muster_saver_has_whole_checkpoint (self->life.saver, DIRECTORY, &options, &found, error);
}

static gboolean
claim_directory (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_saver_claim_directory (self->life.saver, DIRECTORY, self->store.deadline_us,
                                       self->store.cancellable, error);
}

static gboolean
begin_run (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_saver_begin_run (self->life.saver, DIRECTORY, PREFIX, 7, self->store.deadline_us,
                                 self->store.cancellable, error);
}

static gboolean
write_goodput (gpointer data, GError **error)
{
  Chief *self = data;
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  (void)muster_saver_read_goodput (self->life.saver, DIRECTORY, &goodput);
  return muster_saver_write_goodput (self->life.saver, DIRECTORY, self->store.deadline_us,
                                     self->store.cancellable, error);
}

static gboolean
go_on (gpointer data, GError **error)
{
  Chief *self = data;
  const MusterLivingModel living = {.durable = PREFIX, .durable_step = 7, .step = 8};
  gboolean may;
  return muster_saver_continue (self->life.saver, DIRECTORY, &living, TRUE, &may, error) &&
         muster_saver_clear_crash_loop (self->life.saver, error);
}

static gboolean
find_latest (gpointer data, GError **error)
{
  Chief *self = data;
  const char *prefixes[] = {PREFIX, NULL};
  muster_saver_recover_last_checkpoints (self->life.saver, prefixes);
  g_autofree char *latest = muster_saver_latest_checkpoint (self->life.saver, DIRECTORY, error);
  return latest != NULL;
}

/* The list has all of them, or there is none. */
static gboolean
list (gpointer data, GError **error)
{
  Chief *self = data;
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, self->store.deadline_us, NULL, self->store.cancellable);
  g_auto (GStrv) prefixes = muster_checkpoint_list (storage, DIRECTORY, error);
  if (prefixes == NULL)
    return FALSE;
  MUSTER_EXPECT_TRUE (g_strv_contains ((const char *const *)prefixes, PREFIX));
  return TRUE;
}

static gboolean
probe (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_saver_probe_once (self->life.saver, self->life.session, DIRECTORY,
                                  self->store.deadline_us, self->store.cancellable, error);
}

static gboolean
pin (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_checkpoint_pin (self->storage, PREFIX, "for the paper", self->store.deadline_us,
                                self->store.cancellable, error);
}

static gboolean
unpin (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_checkpoint_unpin (self->storage, PREFIX, self->store.deadline_us,
                                  self->store.cancellable, error);
}

static gboolean
mark (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_checkpoint_set_metric (self->storage, PREFIX, "loss", 0.5, self->store.deadline_us,
                                       self->store.cancellable, error);
}

static gboolean
set_aside (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_checkpoint_quarantine (self->storage, PREFIX, "bad", NULL, error);
}

static const StalledOperation operations[] = {
    {"save", save},
    {"save in the background", save_in_background},
    {"restore", restore},
    {"restore a prefix", restore_prefix},
    {"check", check_compatible},
    {"claim", claim_directory},
    {"begin a run", begin_run},
    {"write goodput", write_goodput},
    {"continue", go_on},
    {"find the latest", find_latest},
    {"list", list},
    {"probe", probe},
    {"pin", pin},
    {"unpin", unpin},
    {"mark", mark},
    {"set aside", set_aside},
    {0},
};

static const StalledWorld chiefs = {sizeof (Chief), begin, end};

/* --- what must hold --- */

static MusterObjectStorage *
fill (void)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  Chief chief;
  g_autoptr (GError) error = NULL;
  begin (&chief, store);
  for (gint64 step = 4; step <= 7; step++)
    MUSTER_EXPECT_TRUE (save_step (&chief, step, &error));
  MUSTER_EXPECT_TRUE (pin (&chief, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  end (&chief);
  return g_steal_pointer (&store);
}

MUSTER_TEST (StalledStore, ends_every_call_of_every_operation)
{
  g_autoptr (MusterObjectStorage) filled = fill ();
  stalled_store_expect_ends (&chiefs, filled, operations);
}
