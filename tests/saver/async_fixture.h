// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "saver/async/async_saver.h"
#include "tests/doubles/gate_storage.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

/* An async saver on the engine, over a store that can hold a save up. "v" and "w" are variables. */

typedef struct {
  MusterGateStorage *gates;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterMaster *master;
  MusterSession *session;
  MusterAsyncSaver *async;
} Async;

typedef struct {
  MusterSavePolicy policy;
  guint64 budget_bytes;
  MusterSaveFinished finished;
  gpointer finished_data;
} AsyncHow;

static inline Async
async_set_up (AsyncHow how)
{
  Async f = {.gates = muster_gate_storage_new ()};
  g_autoptr (GError) error = NULL;
  MusterSaverOptions saver_options = {.storage = MUSTER_STORAGE (f.gates)};

  f.meta_graph = muster_small_model_new (muster_small_variables, 2, 0);
  f.saver = muster_saver_new (f.meta_graph, &saver_options, NULL);
  f.master = muster_local_master_new ();
  f.session = muster_master_create_session (f.master, muster_meta_graph_graph (f.meta_graph), NULL,
                                            MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  f.async = muster_async_saver_new (f.saver, f.session, how.policy, how.budget_bytes, &error);
  muster_async_saver_set_finished (f.async, how.finished, how.finished_data, NULL);
  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_session_run_op (f.session, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  return f;
}

static inline void
async_tear_down (Async *f)
{
  for (guint gate = 0; gate < MUSTER_N_GATES; gate++)
    muster_gate_storage_open_gate (f->gates, (MusterGate)gate);
  g_clear_object (&f->async);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_object (&f->gates);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Async, async_tear_down)

/* The step of the last save that reached a state. */
static inline gint64
async_step (Async *f, MusterSaveState state)
{
  g_auto (MusterSaveStatus) status = MUSTER_SAVE_STATUS_INIT;

  muster_async_saver_status (f->async, &status);
  return status.step[state];
}

/* Half a minute: nothing here takes that long. */
static inline gint64
async_soon (void)
{
  return g_get_monotonic_time () + 30 * MUSTER_SECOND;
}

static inline void
async_assign_w (Async *f, MusterTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  MusterFeed feed = {"w/initial_value:0", tensor};
  const char *target = "w/Assign";
  MusterStep step = {.feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1};

  (void)muster_session_run (f->session, &step, NULL, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Training: w becomes value. */
static inline void
async_set_w (Async *f, gint64 value)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int64 (value);

  async_assign_w (f, tensor);
}

static inline gint64
async_w (Async *f)
{
  g_autoptr (MusterTensor) w =
      muster_session_fetch (f->session, "w/read:0", MUSTER_WAIT_FOREVER, NULL, NULL);

  return w != NULL ? *(const gint64 *)muster_tensor_data (w) : -1;
}

/* w in a checkpoint; -1 where there is none. */
static inline gint64
async_w_in (const char *prefix)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  g_autoptr (MusterTensor) w =
      reader != NULL ? muster_bundle_reader_read (reader, "w", NULL) : NULL;

  return w != NULL ? *(const gint64 *)muster_tensor_data (w) : -1;
}

static inline MusterSaveTicket *
async_save (Async *f, gint64 step, GError **error)
{
  return muster_async_saver_save (f->async, muster_test_tmpdir (), step, async_soon (), NULL,
                                  error);
}

static inline gboolean
async_wait (MusterSaveTicket *ticket, MusterSaveState state, GError **error)
{
  return muster_save_ticket_wait (ticket, state, async_soon (), NULL, error);
}

static inline gboolean
async_sync (Async *f, GError **error)
{
  return muster_async_saver_sync (f->async, async_soon (), NULL, error);
}

/* The base name of a ticket's path. */
static inline char *
async_name (MusterSaveTicket *ticket)
{
  return g_path_get_basename (muster_save_ticket_path (ticket));
}

/* The base name of the latest checkpoint; "none". */
static inline char *
async_latest (void)
{
  g_autofree char *latest =
      muster_latest_checkpoint (muster_local_storage (), muster_test_tmpdir (), NULL);

  return latest != NULL ? g_path_get_basename (latest) : g_strdup ("none");
}
