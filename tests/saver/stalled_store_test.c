// SPDX-License-Identifier: Apache-2.0
/* An object store that stops answering, at every call of every operation: each one ends by the
 * operation's deadline, and by its cancellable. */
#include "base/error.h"
#include "checkpoint/state/checkpoint_mark.h"
#include "checkpoint/state/quarantine.h"
#include "engine/session/local_master.h"
#include "saver/async/async_saver.h"
#include "saver/compatibility.h"
#include "saver/probe.h"
#include "saver/restore.h"
#include "tests/doubles/fake_master.h"
#include "tests/doubles/sharded_model.h"
#include "tests/doubles/stalled_store.h"
#include "tests/gtest_shim.h"

#define DIRECTORY "s3://bucket/run"
#define PREFIX    DIRECTORY "/model.ckpt-7"

static const MusterShardedModel model = {.rows = 2};

/* A chief whose own store stalls; its master writes into the same one, which answers that. */
typedef struct {
  MusterObjectStorage *process;
  MusterStorage *storage; /* (not owned) that */
  MusterObjectStorage *masters;
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
  MusterFakeClock *clock;
  MusterFakeMaster *judge; /* who is chief */
  MusterSession *judged;
  MusterLease *lease;
  gint64 deadline_us;
  GCancellable *cancellable;
} Chief;

static void
chief_clear (Chief *self)
{
  g_clear_object (&self->cancellable);
  g_clear_object (&self->saver);
  g_clear_object (&self->lease);
  g_clear_object (&self->judged);
  g_clear_object (&self->judge);
  g_clear_object (&self->clock);
  g_clear_object (&self->session);
  g_clear_object (&self->master);
  g_clear_object (&self->masters);
  g_clear_object (&self->process);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chief, chief_clear)

static void
claim (Chief *self)
{
  const MusterClaim claim = {.model = "digits", .take_over = TRUE};

  self->clock = muster_fake_clock_new ();
  self->judge = muster_fake_master_new (self->clock);
  muster_fake_master_set_announcing (self->judge);
  self->judged = muster_master_create_session (MUSTER_MASTER (self->judge), NULL, NULL,
                                               MUSTER_WAIT_FOREVER, NULL, NULL);
  self->lease = muster_session_claim (self->judged, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_EXPECT_TRUE (self->lease != NULL);
  muster_saver_set_lease (self->saver, self->lease);
}

static Chief
begin (MusterObjectStorage *store)
{
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&model);
  Chief self = {.process = object_storage_process (store),
                .masters = object_storage_process (store),
                .deadline_us = stalled_store_deadline (),
                .cancellable = g_cancellable_new ()};
  self.storage = MUSTER_STORAGE (self.process);
  const MusterLocalMasterOptions masters = {.storage = MUSTER_STORAGE (self.masters)};
  const MusterSaverOptions options = {.storage = self.storage,
                                      .max_to_keep = 2,
                                      .keep_best = 1,
                                      .metric = "loss:min",
                                      .save_timeout_us = 3000 * MUSTER_SECOND};
  self.master = muster_local_master_new_with_options (&masters);
  self.session = muster_master_create_session (self.master, muster_meta_graph_graph (meta_graph),
                                               NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  self.saver = muster_saver_new (meta_graph, &options, NULL);
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, self.session, 1, NULL));
  claim (&self);
  return self;
}

static gboolean
save_step (Chief *self, gint64 step, GError **error)
{
  muster_saver_set_metric (self->saver, 1.0 / (double)step);
  g_autofree char *prefix = muster_saver_save (self->saver, self->session, DIRECTORY, step,
                                               self->deadline_us, self->cancellable, error);
  return prefix != NULL;
}

/* --- the operations --- */

static gboolean
save (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_saver_adopt_directory (self->saver, DIRECTORY, error) && save_step (self, 9, error);
}

static gboolean
save_in_background (gpointer data, GError **error)
{
  Chief *self = data;
  g_autoptr (MusterAsyncSaver) async =
      muster_async_saver_new (self->saver, self->session, NULL, error);
  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_save (async, DIRECTORY, 9, self->deadline_us, self->cancellable, error);
  return ticket != NULL &&
         muster_async_saver_sync (async, self->deadline_us, self->cancellable, error);
}

static gboolean
restore_with (Chief *self, const MusterRestoreOptions *options, GError **error)
{
  g_auto (MusterRestored) restored = {0};
  return muster_saver_restore (self->saver, self->session, options, &restored, self->deadline_us,
                               self->cancellable, error);
}

static gboolean
restore (gpointer data, GError **error)
{
  Chief *self = data;
  const MusterRestoreOptions options = {
      .directory = DIRECTORY, .count_deaths = TRUE, .fall_back_to_files = TRUE};
  return restore_with (self, &options, error) && muster_saver_mark_good (self->saver, error);
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
  return muster_saver_has_whole_checkpoint (self->saver, DIRECTORY, &options, &found, error);
}

static gboolean
claim_directory (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_saver_claim_directory (self->saver, DIRECTORY, self->deadline_us, self->cancellable,
                                       error);
}

static gboolean
begin_run (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_saver_begin_run (self->saver, DIRECTORY, PREFIX, 7, self->deadline_us,
                                 self->cancellable, error);
}

static gboolean
write_goodput (gpointer data, GError **error)
{
  Chief *self = data;
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  (void)muster_saver_read_goodput (self->saver, DIRECTORY, &goodput);
  return muster_saver_write_goodput (self->saver, DIRECTORY, self->deadline_us, self->cancellable,
                                     error);
}

static gboolean
go_on (gpointer data, GError **error)
{
  Chief *self = data;
  const MusterLivingModel living = {.durable = PREFIX, .durable_step = 7, .step = 8};
  gboolean may;
  return muster_saver_continue (self->saver, DIRECTORY, &living, TRUE, &may, error) &&
         muster_saver_clear_crash_loop (self->saver, error);
}

static gboolean
find_latest (gpointer data, GError **error)
{
  Chief *self = data;
  const char *prefixes[] = {PREFIX, NULL};
  muster_saver_recover_last_checkpoints (self->saver, prefixes);
  g_autofree char *latest = muster_saver_latest_checkpoint (self->saver, DIRECTORY, error);
  return latest != NULL;
}

/* The list has all of them, or there is none. */
static gboolean
list (gpointer data, GError **error)
{
  Chief *self = data;
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, self->deadline_us, NULL, self->cancellable);
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
  return muster_saver_probe (self->saver, self->session, DIRECTORY, self->deadline_us,
                             self->cancellable, error);
}

static gboolean
pin (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_checkpoint_pin (self->storage, PREFIX, "for the paper", self->deadline_us,
                                self->cancellable, error);
}

static gboolean
unpin (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_checkpoint_unpin (self->storage, PREFIX, self->deadline_us, self->cancellable,
                                  error);
}

static gboolean
mark (gpointer data, GError **error)
{
  Chief *self = data;
  return muster_checkpoint_set_metric (self->storage, PREFIX, "loss", 0.5, self->deadline_us,
                                       self->cancellable, error);
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
};

/* --- what must hold --- */

static MusterObjectStorage *
fill (void)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  g_auto (Chief) chief = begin (store);
  g_autoptr (GError) error = NULL;

  for (gint64 step = 4; step <= 7; step++)
    MUSTER_EXPECT_TRUE (save_step (&chief, step, &error));
  MUSTER_EXPECT_TRUE (pin (&chief, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return g_steal_pointer (&store);
}

static gboolean
stalls_at (MusterObjectStorage *filled, const StalledOperation *operation, guint n)
{
  g_autoptr (MusterObjectStorage) store = object_storage_copy (filled);
  g_auto (Chief) chief = begin (store);

  return stalled_store_ends (chief.process, n, chief.deadline_us, operation, &chief);
}

MUSTER_TEST (StalledStore, ends_every_call_of_every_operation)
{
  g_autoptr (MusterObjectStorage) filled = fill ();

  for (guint i = 0; i < G_N_ELEMENTS (operations); i++) {
    guint n = 1;
    while (n < 1000 && stalls_at (filled, &operations[i], n))
      n++;
    MUSTER_EXPECT_TRUE (n > 1 && n < 1000);
  }
}
