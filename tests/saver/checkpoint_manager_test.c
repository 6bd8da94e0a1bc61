// SPDX-License-Identifier: Apache-2.0
#include "saver/async/checkpoint_manager.h"

#include "checkpoint/stores/default_storage.h"
#include "tests/doubles/object_storage.h"
#include "tests/saver/directory_fixture.h"

#include <string.h>

typedef struct {
  Fixture f;
  MusterCheckpointManager *manager;
  gint64 step;
  guint n_waits, n_initialised;
} Story;

static gboolean
read_step (MusterSession *session G_GNUC_UNUSED, gint64 *step, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  *step = ((Story *)data)->step;
  return TRUE;
}

static gboolean
initialize (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  ((Story *)data)->n_initialised++;
  return TRUE;
}

static gboolean
wait_for_saves (gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                gpointer data, GError **error G_GNUC_UNUSED)
{
  ((Story *)data)->n_waits++;
  return TRUE;
}

/* Begins, or goes on in another life. */
static void
begin (Story *self, MusterCheckpointManagerOptions options)
{
  g_autoptr (GError) error = NULL;
  if (self->f.clock == NULL)
    self->f = set_up ((MusterSaverOptions){0});
  options.saver.clock = MUSTER_CLOCK (self->f.clock);
  options.step_data = options.initialize_data = options.wait_data = self;
  g_clear_object (&self->manager);
  self->manager =
      muster_checkpoint_manager_new (self->f.meta_graph, muster_test_tmpdir (), &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
story_clear (Story *self)
{
  g_clear_object (&self->manager);
  tear_down (&self->f);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Story, story_clear)

/* "ckpt-3", or why there is none. */
static char *
save_as (Story *self, gint64 number, gboolean check_interval)
{
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  muster_checkpoint_manager_save (self->manager, self->f.session, number, check_interval, &saved,
                                  MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return saved.prefix != NULL ? g_path_get_basename (saved.prefix) : g_strdup ("none");
}

static void
expect_save (Story *self, gint64 number, gboolean check_interval, const char *expected)
{
  g_autofree char *name = save_as (self, number, check_interval);

  MUSTER_EXPECT_STREQ (name, expected);
}

static void
expect_refused (MusterCheckpointManagerOptions options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (muster_small_variables, 2, 5);
  g_autoptr (MusterCheckpointManager) manager =
      muster_checkpoint_manager_new (meta_graph, muster_test_tmpdir (), &options, &error);

  MUSTER_EXPECT_NULL (manager);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

static MusterStorage *
make_objects (GError **error G_GNUC_UNUSED)
{
  return MUSTER_STORAGE (object_storage_new ());
}

MUSTER_TEST (CheckpointManager, goes_where_its_directory_s_scheme_leads)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  muster_storage_offer ("test", make_objects);
  for (int i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterCheckpointManager) manager = muster_checkpoint_manager_new (
        f.meta_graph, i == 0 ? "test://bucket/run" : "gs://bucket/run", NULL, &error);
    MUSTER_EXPECT_EQ (manager != NULL, i == 0);
    if (i == 1)
      MUSTER_EXPECT_TRUE (strstr (error->message, "no store supports 'gs://'") != NULL);
  }
}

/* SAV.80 */
MUSTER_TEST (CheckpointManager, refuses_what_cannot_be)
{
  expect_refused ((MusterCheckpointManagerOptions){.saver.max_to_keep = -2});
  expect_refused (
      (MusterCheckpointManagerOptions){.saver.max_to_keep = 1, .checkpoint_interval = 5});
  expect_refused ((MusterCheckpointManagerOptions){.saver.keep_best = 1});
  expect_refused (
      (MusterCheckpointManagerOptions){.saver.keep_best = 1, .saver.metric = "loss:low"});
}

/* SAV.81, SAV.82: relative in the state file, and a sweep deletes as many as needed */
MUSTER_TEST (CheckpointManager, names_by_its_counter_or_by_a_number)
{
  g_auto (Story) story = {0};
  g_autofree char *path = below_tmpdir ("checkpoint"), *text = NULL;
  begin (&story, (MusterCheckpointManagerOptions){.saver.max_to_keep = 9});

  expect_save (&story, -1, FALSE, "ckpt-1");
  expect_save (&story, 7, FALSE, "ckpt-7");
  expect_save (&story, -1, FALSE, "ckpt-3"); /* the counter has counted */

  g_file_get_contents (path, &text, NULL, NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (text, "model_checkpoint_path: \"ckpt-3\"\n"));
  begin (&story, (MusterCheckpointManagerOptions){.saver.max_to_keep = 1});
  expect_save (&story, -1, FALSE, "ckpt-4");
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "4");
  g_autofree char *latest = muster_checkpoint_manager_latest_checkpoint (story.manager);
  MUSTER_EXPECT_EQ (muster_checkpoint_step (latest), 4);
}

/* Over restarts, of which the last one's options leave the rules as they are. */
MUSTER_TEST (CheckpointManager, keeps_the_best_and_milestones)
{
  static const double losses[] = {5, 1, 4, 2, 6, 3, 7, 8};
  g_auto (Story) story = {0};
  for (int i = 0; i < (int)G_N_ELEMENTS (losses); i++) {
    g_autofree char *name = g_strdup_printf ("ckpt-%d", i + 1);
    begin (&story, i < 6 ? (MusterCheckpointManagerOptions){.saver.max_to_keep = 1,
                                                            .saver.keep_best = 2,
                                                            .saver.metric = "loss:min",
                                                            .saver.keep_every_steps = 3}
                         : (MusterCheckpointManagerOptions){.saver.max_to_keep = 1,
                                                            .saver.metric = "loss:min"});
    muster_saver_set_metric (muster_checkpoint_manager_saver (story.manager), losses[i]);
    expect_save (&story, -1, FALSE, name);
  }
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "2 3 4 6 8"); /* the best are 2 and 4; 3 and 6 are milestones */
}

/* SAV.83, over a restart */
MUSTER_TEST (CheckpointManager, keeps_one_in_every_so_many_hours)
{
  g_auto (Story) story = {0};
  for (int i = 0; i < 7; i++) {
    begin (&story,
           (MusterCheckpointManagerOptions){.saver.max_to_keep = 1, .saver.keep_every_n_hours = 2});
    expect_save (&story, i, FALSE,
                 ((const char *[]){"ckpt-0", "ckpt-1", "ckpt-2", "ckpt-3", "ckpt-4", "ckpt-5",
                                   "ckpt-6"})[i]);
    muster_fake_clock_pass (story.f.clock, 3600 * MUSTER_SECOND);
  }
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "2 4 6");
}

/* SAV.84 */
MUSTER_TEST (CheckpointManager, saves_once_in_an_interval)
{
  g_auto (Story) story = {.step = 10};
  begin (&story,
         (MusterCheckpointManagerOptions){.checkpoint_interval = 5, .read_step = read_step});

  expect_save (&story, -1, TRUE, "ckpt-1"); /* none before */
  expect_save (&story, -1, FALSE, "none");  /* the same step */
  story.step = 14;
  expect_save (&story, -1, TRUE, "none");
  expect_save (&story, -1, FALSE, "ckpt-2");
  story.step = 19;
  expect_save (&story, -1, TRUE, "ckpt-3");
}

/* SAV.86, and the wait that upstream forgets */
MUSTER_TEST (CheckpointManager, restores_the_latest_or_initialises)
{
  const MusterCheckpointManagerOptions options = {.initialize = initialize,
                                                  .wait_for_saves = wait_for_saves};
  g_auto (Story) story = {0};
  g_autofree char *none = NULL, *restored = NULL;
  g_autoptr (GError) error = NULL;
  begin (&story, options);

  MUSTER_EXPECT_TRUE (muster_checkpoint_manager_restore_or_initialize (
      story.manager, story.f.session, &none, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_EQ (story.n_initialised, 1u);
  expect_save (&story, 41, FALSE, "ckpt-41");
  begin (&story, options);
  MUSTER_EXPECT_TRUE (muster_checkpoint_manager_restore_or_initialize (
      story.manager, story.f.session, &restored, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (restored != NULL && g_str_has_suffix (restored, "/ckpt-41"));
  MUSTER_EXPECT_EQ (story.n_initialised, 1u);
  MUSTER_EXPECT_EQ (story.n_waits, 2u);
  expect_save (&story, -1, FALSE, "ckpt-42");
}

/* DIFF.28: only what succeeded counts */
MUSTER_TEST (CheckpointManager, counts_no_save_that_failed)
{
  g_auto (Story) story = {.step = 1};
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  begin (&story,
         (MusterCheckpointManagerOptions){.checkpoint_interval = 5, .read_step = read_step});
  muster_fake_master_fail (story.f.master, "save/control_dependency", 1, 1,
                           MUSTER_ERROR_UNAVAILABLE, "the ps died");
  MUSTER_EXPECT_FALSE (muster_checkpoint_manager_save (story.manager, story.f.session, -1, TRUE,
                                                       &saved, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  expect_save (&story, -1, TRUE, "ckpt-1");
}
