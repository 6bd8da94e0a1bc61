// SPDX-License-Identifier: Apache-2.0
/* What killed processes left half written goes with the next save, in the directories of training
 * states and backups as in a saver's own. */
#include "callbacks/backup.h"
#include "callbacks/worker_training_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "train/position/position.h"

#include <glib/gstdio.h>
#include <string.h>

typedef struct {
  MusterMetaGraph *model;
  MusterMaster *master;
  MusterSession *session;
  char *directory;
  GError *error;
} Fixture;

static Fixture
set_up (void)
{
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){0});
  Fixture f = {.model = muster_position_add (plain, 1, NULL),
               .master = muster_local_master_new (),
               .directory = g_build_filename (muster_test_tmpdir (), "run", NULL)};
  f.session = muster_master_create_session (f.master, muster_meta_graph_graph (f.model), NULL,
                                            MUSTER_WAIT_FOREVER, NULL, &f.error);
  MUSTER_EXPECT_NO_ERROR (f.error);
  (void)muster_session_run_op (f.session, muster_meta_graph_op (f.model, "init_op"),
                               MUSTER_WAIT_FOREVER, NULL, &f.error);
  MUSTER_EXPECT_NO_ERROR (f.error);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  muster_meta_graph_unref (f->model);
  g_free (f->directory);
  g_clear_error (&f->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* Of thirty lives on this host that were killed in mid-save. */
static void
leave_half_written (const char *directory)
{
  g_assert (g_mkdir_with_parents (directory, 0777) == 0);
  for (guint i = 0; i < 30; i++) {
    static const char *const ends[] = {".index", ".data-00000-of-00001", "-alive"};
    for (gsize j = 0; j < G_N_ELEMENTS (ends); j++) {
      g_autofree char *name = g_strdup_printf (".saving-%08x-ckpt-1%s", i, ends[j]);
      g_autofree char *path = g_build_filename (directory, name, NULL);
      const char *text = strcmp (ends[j], "-alive") == 0 ? g_get_host_name () : "";
      g_assert (g_file_set_contents (path, text, -1, NULL));
    }
  }
}

static void
expect_swept (const char *directory)
{
  g_autoptr (GDir) names = g_dir_open (directory, 0, NULL);
  MUSTER_ASSERT_TRUE (names != NULL);
  for (const char *name; (name = g_dir_read_name (names)) != NULL;)
    MUSTER_EXPECT_FALSE (g_str_has_prefix (name, ".saving-"));
}

MUSTER_TEST (Sweep, a_training_states_directory_is_swept_by_its_next_save)
{
  g_auto (Fixture) f = set_up ();
  const MusterWorkerTrainingStateOptions options = {.directory = f.directory};
  g_autofree char *chief = g_build_filename (f.directory, "chief", NULL);
  leave_half_written (chief);
  g_autoptr (MusterWorkerTrainingState) state =
      muster_worker_training_state_new (f.model, f.session, &options, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);

  MUSTER_EXPECT_TRUE (
      muster_worker_training_state_back_up (state, 1, -1, MUSTER_WAIT_FOREVER, NULL, &f.error));

  MUSTER_EXPECT_NO_ERROR (f.error);
  expect_swept (chief);
}

MUSTER_TEST (Sweep, a_backups_directory_is_swept_by_its_next_save)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSessionProgram) program =
      muster_session_program_new (f.model, f.session, NULL, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);
  const MusterProgram verbs = muster_session_program_operations (program);
  g_autofree char *prefix = g_build_filename (f.directory, "latest-1", NULL);
  leave_half_written (f.directory);

  MUSTER_EXPECT_TRUE (verbs.save (prefix, MUSTER_WAIT_FOREVER, NULL, verbs.user_data, &f.error));

  MUSTER_EXPECT_NO_ERROR (f.error);
  expect_swept (f.directory);
}
