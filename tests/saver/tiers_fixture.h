// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "saver/restore.h"
#include "saver/tiered.h"
#include "tests/doubles/faulty_storage.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

/* A model on the engine, saved in two tiers below the test's folder: "fast" and "run". "w" is its
 * variable. */

#define FAST    MUSTER_TIER_BIT (0)
#define DURABLE MUSTER_TIER_BIT (1)
#define BOTH    (FAST | DURABLE)

typedef struct {
  MusterFaultyStorage *storage;
  MusterMetaGraph *meta_graph;
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
  char *fast, *run; /* the directories */
  int keep;         /* of the fast tier; 0: 5 */
} Tiers;

/* Half a minute: nothing here takes that long. */
static inline gint64
tiers_soon (void)
{
  return g_get_monotonic_time () + 30 * MUSTER_SECOND;
}

static inline MusterSaver *
tiers_saver (Tiers *f, const char *fast)
{
  g_autoptr (GError) error = NULL;
  const MusterTier tier = {
      .directory = fast, .save_steps = 10, .max_to_keep = f->keep > 0 ? f->keep : 5};
  const MusterSaverOptions options = {
      .storage = MUSTER_STORAGE (f->storage), .fast = &tier, .n_fast = fast != NULL};
  MusterSaver *saver = muster_saver_new (f->meta_graph, &options, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  return saver;
}

/* Another process: a master, a session and a saver. */
static inline void
tiers_start (Tiers *f)
{
  g_autoptr (GError) error = NULL;

  g_clear_object (&f->saver);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  f->master = muster_local_master_new_with (MUSTER_STORAGE (f->storage), 0);
  f->session = muster_master_create_session (f->master, muster_meta_graph_graph (f->meta_graph),
                                             NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_session_run_op (f->session, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  f->saver = tiers_saver (f, f->fast);
}

static inline Tiers
tiers_set_up (void)
{
  Tiers f = {.storage = muster_faulty_storage_new (),
             .meta_graph = muster_small_model_new (muster_small_variables, 2, 5),
             .fast = g_build_filename (muster_test_tmpdir (), "fast", NULL),
             .run = g_build_filename (muster_test_tmpdir (), "run", NULL)};

  tiers_start (&f);
  return f;
}

static inline void
tiers_tear_down (Tiers *f)
{
  muster_faulty_storage_set (f->storage, NULL, MUSTER_FAULT_NONE);
  if (f->saver != NULL) {
    muster_saver_cancel_copies (f->saver);
    (void)muster_saver_sync_copies (f->saver, tiers_soon (), NULL, NULL);
  }
  g_clear_object (&f->saver);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_object (&f->storage);
  g_free (f->fast);
  g_free (f->run);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Tiers, tiers_tear_down)

/* Training: w becomes value. */
static inline void
tiers_set_w (Tiers *f, gint64 value)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int64 (value);
  const MusterFeed feed = {"w/initial_value:0", tensor};
  const char *target = "w/Assign";
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1};

  (void)muster_session_run (f->session, &step, NULL, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static inline gint64
tiers_w (Tiers *f)
{
  g_autoptr (MusterTensor) w =
      muster_session_fetch (f->session, "w/read:0", MUSTER_WAIT_FOREVER, NULL, NULL);
  return w != NULL ? *(const gint64 *)muster_tensor_data (w) : -1;
}

/* w in a checkpoint of a directory; -1 where there is none. */
static inline gint64
tiers_w_in (const char *directory, gint64 step)
{
  g_autofree char *prefix = g_strdup_printf ("%s/model.ckpt-%" G_GINT64_FORMAT, directory, step);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  g_autoptr (MusterTensor) w =
      reader != NULL ? muster_bundle_reader_read (reader, "w", NULL) : NULL;
  return w != NULL ? *(const gint64 *)muster_tensor_data (w) : -1;
}

static inline gboolean
tiers_begin (Tiers *f, const char *resumed, gint64 step, GError **error)
{
  return muster_saver_open_tiers (f->saver, f->session, f->run, tiers_soon (), NULL, error) &&
         muster_saver_begin_run (f->saver, f->run, resumed, step, tiers_soon (), NULL, error);
}

/* Saves w = value as step; the prefix is returned. */
static inline char *
tiers_save (Tiers *f, gint64 value, gint64 step, MusterTierSet due, GError **error)
{
  g_auto (MusterSaved) saved = {0};

  tiers_set_w (f, value);
  return muster_saver_save_with (f->saver, f->session, f->run, step, due, &saved, tiers_soon (),
                                 NULL, error)
             ? g_steal_pointer (&saved.prefix)
             : NULL;
}

/* The same, and waits for the copies. */
static inline void
tiers_save_all (Tiers *f, gint64 value, gint64 step, MusterTierSet due)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = tiers_save (f, value, step, due, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_saver_sync_copies (f->saver, tiers_soon (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Restores the newest; *passed_over is (nullable). Its prefix, NULL if there is none. */
static inline char *
tiers_restore (Tiers *f, char **passed_over, GError **error)
{
  const MusterRestoreOptions latest = {.directory = f->run};
  g_auto (MusterRestored) restored = {0};

  if (!muster_saver_restore (f->saver, f->session, &latest, &restored, tiers_soon (), NULL, error))
    return NULL;
  if (passed_over != NULL)
    *passed_over = g_steal_pointer (&restored.passed_over);
  return g_steal_pointer (&restored.prefix);
}

/* Another process restores the newest and begins its run: w, -1 if there is nothing. */
static inline gint64
tiers_resume (Tiers *f, char **passed_over)
{
  g_autoptr (GError) error = NULL;

  tiers_start (f);
  g_autofree char *prefix = tiers_restore (f, passed_over, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (tiers_begin (f, prefix, -1, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return prefix != NULL ? tiers_w (f) : -1;
}
