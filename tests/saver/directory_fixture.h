// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "saver/saver.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

/* A small model on a fake master, saved into the test's folder by one saver or more. */
typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
} Fixture;

static inline MusterSaver *
saver_with (Fixture *f, MusterSaverOptions options)
{
  g_autoptr (GError) error = NULL;
  if (options.clock == NULL)
    options.clock = MUSTER_CLOCK (f->clock);
  MusterSaver *saver = muster_saver_new (f->meta_graph, &options, &error);

  MUSTER_EXPECT_NO_ERROR (error);

  return saver;
}

/* max_to_keep is the SaverDef's. */
static inline Fixture
set_up_with_def (int max_to_keep, MusterSaverOptions options)
{
  Fixture f = {.clock = muster_fake_clock_new ()};

  f.meta_graph = muster_small_model_new (muster_small_variables, 2, max_to_keep);
  f.master = muster_fake_master_new (f.clock);
  muster_small_model_play (f.master);
  muster_fake_master_set_variable (f.master, "v");
  f.session = muster_master_create_session (MUSTER_MASTER (f.master), NULL, NULL,
                                            MUSTER_WAIT_FOREVER, NULL, NULL);
  f.saver = saver_with (&f, options);

  return f;
}

static inline Fixture
set_up (MusterSaverOptions options)
{
  return set_up_with_def (5, options);
}

static inline void
tear_down (Fixture *f)
{
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static inline char *
save_by (Fixture *f, MusterSaver *saver, gint64 step, GError **error)
{
  return muster_saver_save (saver, f->session, muster_test_tmpdir (), step, MUSTER_WAIT_FOREVER,
                            NULL, error);
}

static inline void
save (Fixture *f, gint64 step)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = save_by (f, f->saver, step, &error);

  MUSTER_EXPECT_NO_ERROR (error);
}

/* Goes on with a saver of another life. */
static inline void
restart (Fixture *f, MusterSaverOptions options)
{
  g_autoptr (GError) error = NULL;

  g_clear_object (&f->saver);
  f->saver = saver_with (f, options);
  muster_saver_adopt_directory (f->saver, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static inline char *
below_tmpdir (const char *name)
{
  return g_build_filename (muster_test_tmpdir (), name, NULL);
}

/* The steps of prefixes, "3 4 5". */
static inline char *
steps_of (char **prefixes)
{
  GString *steps = g_string_new (NULL);

  for (char **prefix = prefixes; prefix != NULL && *prefix != NULL; prefix++)
    g_string_append_printf (steps, "%s%d", steps->len ? " " : "",
                            (int)muster_checkpoint_step (*prefix));

  return g_string_free (steps, FALSE);
}

static inline char *
steps_listed (Fixture *f)
{
  g_auto (GStrv) list = muster_saver_last_checkpoints (f->saver);

  return steps_of (list);
}

static inline char *
steps_there (void)
{
  g_auto (GStrv) list = muster_checkpoint_list (NULL, muster_test_tmpdir (), NULL);

  return steps_of (list);
}

static inline MusterCheckpointRecord *
record (void)
{
  g_autoptr (GError) error = NULL;
  MusterCheckpointRecord *record =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &error);

  MUSTER_EXPECT_NO_ERROR (error);

  return record;
}
