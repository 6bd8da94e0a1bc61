// SPDX-License-Identifier: Apache-2.0
/* A job's training state: behaviours B000 and D000, by their numbers, on the engine. */
#include "callbacks/worker_training_state.h"

#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/heard.h"
#include "tests/doubles/sharded_model.h"
#include "tests/doubles/watched_storage.h"
#include "tests/gtest_shim.h"

#include <string.h>
#include <unistd.h>

static const MusterShardedModel model = {.is_whole = TRUE};

/* One task of a job, with a master of its own. */
typedef struct {
  MusterMaster *master;
  MusterSession *session;
  MusterWorkerTrainingState *state;
  GString *diary; /* of the callbacks */
  gint64 fails_at_epoch;
} Task;

static char *
directory (void)
{
  return g_build_filename (muster_test_tmpdir (), "job", NULL);
}

static gboolean
try_set_up (Task *task, const char *in, MusterWorkerTrainingStateOptions options, GError **error)
{
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&model);
  *task = (Task){.diary = g_string_new (NULL), .fails_at_epoch = -1};
  options.directory = in;
  task->master = muster_local_master_new ();
  task->session = muster_master_create_session (task->master, muster_meta_graph_graph (meta_graph),
                                                NULL, MUSTER_WAIT_FOREVER, NULL, error);
  if (task->session == NULL || !muster_sharded_model_set (&model, task->session, 0, error))
    return FALSE;
  task->state = muster_worker_training_state_new (meta_graph, task->session, &options, error);
  return task->state != NULL;
}

static void
set_up (Task *task, const char *in, MusterWorkerTrainingStateOptions options)
{
  g_autoptr (GError) error = NULL;
  if (!try_set_up (task, in, options, &error))
    g_error ("A task: %s", error->message);
}

static void
tear_down (Task *task)
{
  g_clear_pointer (&task->state, muster_worker_training_state_free);
  g_clear_object (&task->session);
  g_clear_object (&task->master);
  g_string_free (task->diary, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Task, tear_down)

static int
weights (Task *task)
{
  return muster_sharded_model_get (task->session, NULL);
}

static void
set_weights (Task *task, guint8 value)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, task->session, value, &error));
}

static void
back_up (Task *task, gint64 epoch, guint8 value)
{
  g_autoptr (GError) error = NULL;
  set_weights (task, value);
  MUSTER_EXPECT_TRUE (muster_worker_training_state_back_up (task->state, epoch, -1,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The names in job/NAME (nullable: in job), but for the lock's. */
static char *
names (const char *in, const char *name)
{
  g_autofree char *path = name != NULL ? g_build_filename (in, name, NULL) : g_strdup (in);
  g_auto (GStrv) all = muster_storage_list (muster_local_storage (), path, NULL);
  g_autoptr (GString) text = g_string_new (NULL);

  for (char **one = all; one != NULL && *one != NULL; one++)
    if (strcmp (*one, ".muster.lock") != 0)
      g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "", *one);
  return g_strdup (all != NULL ? text->str : "none");
}

static char *
latest (const char *in)
{
  g_autofree char *path = g_build_filename (in, "chief", NULL);
  g_autofree char *prefix = muster_latest_checkpoint (muster_local_storage (), path, NULL);
  return prefix != NULL ? g_path_get_basename (prefix) : NULL;
}

/* B000.1 */
MUSTER_TEST (WorkerTrainingState, begins_without_a_saved_epoch)
{
  g_autofree char *in = directory ();
  g_auto (Task) task = {0};
  set_up (&task, in, (MusterWorkerTrainingStateOptions){0});

  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (task.state), -1);
  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_batch (task.state), -1);
  MUSTER_EXPECT_FALSE (g_file_test (in, G_FILE_TEST_EXISTS));
}

/* B000.2 to B000.5 */
MUSTER_TEST (WorkerTrainingState, knows_who_writes_where)
{
  g_autofree char *in = directory ();
  g_autofree char *chiefs = g_build_filename (in, "chief", NULL);
  g_autofree char *temporary = g_build_filename (in, "workertemp_3", NULL);
  g_auto (Task) chief = {0}, reader = {0}, writer = {0}, nested = {0};

  set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});
  set_up (&reader, in, (MusterWorkerTrainingStateOptions){.is_worker = TRUE, .task_id = 3});
  MUSTER_EXPECT_FALSE (g_file_test (temporary, G_FILE_TEST_EXISTS));
  set_up (
      &writer, in,
      (MusterWorkerTrainingStateOptions){.is_worker = TRUE, .task_id = 3, .workers_write = TRUE});
  set_up (
      &nested, temporary,
      (MusterWorkerTrainingStateOptions){.is_worker = TRUE, .task_id = 3, .workers_write = TRUE});

  MUSTER_EXPECT_STREQ (muster_worker_training_state_read_dir (chief.state), chiefs);
  MUSTER_EXPECT_STREQ (muster_worker_training_state_write_dir (chief.state), chiefs);
  MUSTER_EXPECT_STREQ (muster_worker_training_state_read_dir (reader.state), chiefs);
  MUSTER_EXPECT_NULL (muster_worker_training_state_write_dir (reader.state));
  MUSTER_EXPECT_STREQ (muster_worker_training_state_write_dir (writer.state), temporary);
  MUSTER_EXPECT_TRUE (g_file_test (temporary, G_FILE_TEST_IS_DIR)); /* made at once */
  MUSTER_EXPECT_STREQ (muster_worker_training_state_write_dir (nested.state), temporary);
}

/* B000.6, B000.7, B000.10 */
MUSTER_TEST (WorkerTrainingState, keeps_one_checkpoint_with_its_epoch_in_it)
{
  g_autofree char *in = directory ();
  g_auto (Task) chief = {0}, next = {0};
  g_autoptr (GError) error = NULL;
  gboolean restored = FALSE;
  set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});

  back_up (&chief, 0, 10);
  back_up (&chief, 1, 11);
  back_up (&chief, 2, 12);

  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (chief.state), 2);
  g_autofree char *there = names (in, "chief");
  g_autofree char *last = latest (in);
  MUSTER_EXPECT_STREQ (there, "checkpoint ckpt-3.data-00000-of-00002 ckpt-3.data-00001-of-00002 "
                              "ckpt-3.index");
  MUSTER_EXPECT_STREQ (last, "ckpt-3");
  set_up (&next, in, (MusterWorkerTrainingStateOptions){.is_worker = TRUE});
  MUSTER_EXPECT_TRUE (muster_worker_training_state_restore (next.state, &restored,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (restored);
  MUSTER_EXPECT_EQ (weights (&next), 12);
  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (next.state), 2);
}

/* B000.8 */
MUSTER_TEST (WorkerTrainingState, of_a_worker_leaves_nothing_behind)
{
  for (int writes = 0; writes < 2; writes++) {
    g_autofree char *in = directory ();
    g_auto (Task) chief = {0}, worker = {0};
    set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});
    back_up (&chief, 4, 10);
    g_autofree char *before = names (in, "chief");
    set_up (&worker, in,
            (MusterWorkerTrainingStateOptions){
                .is_worker = TRUE, .task_id = 1, .workers_write = writes == 1});

    back_up (&worker, 5, 99);
    back_up (&worker, 6, 99);

    g_autofree char *after = names (in, "chief");
    g_autofree char *all = names (in, NULL);
    MUSTER_EXPECT_STREQ (after, before);
    MUSTER_EXPECT_STREQ (all, "chief");
    MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (worker.state),
                      writes == 1 ? 6 : -1);
  }
}

/* B000.9 with D000.4 */
MUSTER_TEST (WorkerTrainingState, of_a_worker_leaves_nothing_behind_where_its_save_fails)
{
  g_autofree char *in = directory ();
  g_auto (Task) worker = {0};
  g_autoptr (GError) error = NULL;
  set_up (
      &worker, in,
      (MusterWorkerTrainingStateOptions){.is_worker = TRUE, .task_id = 1, .workers_write = TRUE});
  muster_session_close_quietly (worker.session);

  MUSTER_EXPECT_FALSE (muster_worker_training_state_back_up (worker.state, 5, -1,
                                                             MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_TRUE (error != NULL);
  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (worker.state), -1);
  g_autofree char *all = names (in, NULL);
  MUSTER_EXPECT_STREQ (all, "");
}

/* B000.10, D000.1 */
MUSTER_TEST (WorkerTrainingState, says_whether_it_has_restored)
{
  g_autofree char *in = directory ();
  g_auto (Task) task = {0};
  g_autoptr (GError) error = NULL, failure = NULL;
  gboolean restored = TRUE;
  set_up (&task, in, (MusterWorkerTrainingStateOptions){0});
  set_weights (&task, 7);

  MUSTER_EXPECT_TRUE (muster_worker_training_state_restore (task.state, &restored,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_FALSE (restored);
  MUSTER_EXPECT_EQ (weights (&task), 7);
  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (task.state), -1);

  back_up (&task, 0, 8);
  g_autofree char *data = g_build_filename (in, "chief", "ckpt-1.index", NULL);
  MUSTER_ASSERT_TRUE (g_file_set_contents (data, "garbage", -1, NULL));
  set_weights (&task, 9);
  MUSTER_EXPECT_FALSE (muster_worker_training_state_restore (task.state, &restored,
                                                             MUSTER_WAIT_FOREVER, NULL, &failure));
  MUSTER_EXPECT_ERROR (failure, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_EQ (weights (&task), 9);
}

/* B000.11, B000.12, D000.5 */
MUSTER_TEST (WorkerTrainingState, begins_with_the_epoch_after_the_saved_one)
{
  g_autofree char *in = directory ();
  g_auto (Task) task = {0};
  set_up (&task, in, (MusterWorkerTrainingStateOptions){0});
  const MusterFitPosition wanted = {5, 0};

  MUSTER_EXPECT_EQ (
      muster_worker_training_state_initial (task.state, MUSTER_MODE_TRAIN, wanted, 3).epoch, 5);
  back_up (&task, 0, 1);
  MUSTER_EXPECT_EQ (
      muster_worker_training_state_initial (task.state, MUSTER_MODE_EVALUATE, wanted, 3).epoch, 5);
  MUSTER_EXPECT_EQ (
      muster_worker_training_state_initial (task.state, MUSTER_MODE_PREDICT, wanted, 3).epoch, 5);
  MUSTER_EXPECT_EQ (muster_worker_training_state_initial (task.state, MUSTER_MODE_TRAIN,
                                                          (MusterFitPosition){0, 0}, 3)
                        .epoch,
                    1);
  heard_begin (G_LOG_LEVEL_MESSAGE);
  MUSTER_EXPECT_EQ (
      muster_worker_training_state_initial (task.state, MUSTER_MODE_TRAIN, wanted, 3).epoch, 1);
  MUSTER_EXPECT_EQ (
      heard_count ("restore", "*resumes at epoch 1, where it was saved, instead of epoch 5"), 1U);
  heard_end ();
}

/* B000.16 */
MUSTER_TEST (WorkerTrainingState, begins_with_the_batch_after_the_saved_one)
{
  static const struct {
    gint64 batch, n_batches, to_epoch, to_batch;
  } cases[] = {{0, 4, 6, 1}, {2, 4, 6, 3}, {3, 4, 7, 0}, {3, 0, 6, 4}, {-1, 4, 7, 0}};
  g_autofree char *in = directory ();
  g_auto (Task) task = {0};
  g_autoptr (GError) error = NULL;
  set_up (&task, in, (MusterWorkerTrainingStateOptions){0});

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Task) next = {0};
    MUSTER_ASSERT_TRUE (muster_worker_training_state_back_up (task.state, 6, cases[i].batch,
                                                              MUSTER_WAIT_FOREVER, NULL, &error));
    set_up (&next, in, (MusterWorkerTrainingStateOptions){0});
    MUSTER_ASSERT_TRUE (
        muster_worker_training_state_restore (next.state, NULL, MUSTER_WAIT_FOREVER, NULL, &error));
    MusterFitPosition to = muster_worker_training_state_initial (
        next.state, MUSTER_MODE_TRAIN, (MusterFitPosition){0, 0}, cases[i].n_batches);
    MUSTER_EXPECT_EQ (to.epoch, cases[i].to_epoch);
    MUSTER_EXPECT_EQ (to.batch, cases[i].to_batch);
  }
}

/* B000.13, B000.17, D000.3 */
MUSTER_TEST (WorkerTrainingState, deletes_the_chiefs_directory_and_no_other)
{
  g_autofree char *in = directory ();
  g_auto (Task) chief = {0}, worker = {0};
  g_autoptr (GError) error = NULL;
  set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});
  set_up (&worker, in, (MusterWorkerTrainingStateOptions){.is_worker = TRUE});
  MUSTER_EXPECT_TRUE (
      muster_worker_training_state_delete_backup (chief.state, &error)); /* never there */
  back_up (&chief, 0, 1);
  g_autofree char *outside = g_build_filename (muster_test_tmpdir (), "outside", NULL);
  g_autofree char *file = g_build_filename (outside, "file", NULL);
  g_autofree char *link = g_build_filename (in, "chief", "link", NULL);
  MUSTER_ASSERT_EQ (g_mkdir_with_parents (outside, 0700), 0);
  MUSTER_ASSERT_TRUE (g_file_set_contents (file, "mine", -1, NULL));
  MUSTER_ASSERT_EQ (symlink (outside, link), 0);

  MUSTER_EXPECT_TRUE (muster_worker_training_state_delete_backup (worker.state, &error));
  g_autofree char *before = names (in, NULL);
  MUSTER_EXPECT_TRUE (muster_worker_training_state_delete_backup (chief.state, &error));
  g_autofree char *after = names (in, NULL);
  MUSTER_EXPECT_TRUE (muster_worker_training_state_delete_backup (chief.state, &error)); /* gone */

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (before, "chief");
  MUSTER_EXPECT_STREQ (after, ""); /* the job's own stays */
  MUSTER_EXPECT_TRUE (g_file_test (file, G_FILE_TEST_EXISTS));
}

/* --- as a callback --- */

/* The weights count the batches. */
static gboolean
train (const MusterFitPosition *at, gint64 n, gint64 deadline_us G_GNUC_UNUSED,
       GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  Task *task = data;
  g_string_append_printf (task->diary, " %" G_GINT64_FORMAT ".%" G_GINT64_FORMAT, at->epoch,
                          at->batch);
  return muster_sharded_model_set (&model, task->session, (guint8)(weights (task) + n), error);
}

static gboolean
fail_at (gint64 epoch, gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
         gpointer data, GError **error)
{
  Task *task = data;
  if (epoch != task->fails_at_epoch)
    return TRUE;
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "interrupted");
  return FALSE;
}

static gboolean
note_begin (MusterFitPosition *start, gint64 n_batches G_GNUC_UNUSED,
            gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
            gpointer data, GError **error G_GNUC_UNUSED)
{
  g_string_append_printf (((Task *)data)->diary, "from %" G_GINT64_FORMAT ".%" G_GINT64_FORMAT ":",
                          start->epoch, start->batch);
  return TRUE;
}

/* Interrupted at the beginning of an epoch, or at a batch's end (with by_batch, of batch 1). */
static gboolean
fail_at_batch (gint64 epoch, gint64 batch, gint64 deadline_us, GCancellable *cancellable,
               gpointer data, GError **error)
{
  return batch != 1 || fail_at (epoch, deadline_us, cancellable, data, error);
}

static gboolean
fit (Task *task, gboolean by_batch, GError **error)
{
  MusterFitCallback callbacks[] = {muster_worker_training_state_callback (task->state),
                                   {.train_begin = note_begin,
                                    .epoch_begin = by_batch ? NULL : fail_at,
                                    .batch_end = by_batch ? fail_at_batch : NULL,
                                    .user_data = task}};
  MusterFit what = {.train = train,
                    .user_data = task,
                    .n_epochs = 4,
                    .n_batches = 3,
                    .callbacks = callbacks,
                    .n_callbacks = 2};
  return muster_fit (&what, NULL, MUSTER_WAIT_FOREVER, NULL, error);
}

/* B000.15, D000.7: an interrupted epoch is trained again from its start, on the weights that it
 * began with */
MUSTER_TEST (WorkerTrainingState, trains_an_unfinished_epoch_again)
{
  g_autofree char *in = directory ();
  g_auto (Task) first = {0}, second = {0};
  g_autoptr (GError) error = NULL;
  set_up (&first, in, (MusterWorkerTrainingStateOptions){0});
  first.fails_at_epoch = 2;
  MUSTER_EXPECT_FALSE (fit (&first, TRUE, NULL)); /* after 2.1 */
  MUSTER_EXPECT_STREQ (first.diary->str, "from 0.0: 0.0 0.1 0.2 1.0 1.1 1.2 2.0 2.1");

  set_up (&second, in, (MusterWorkerTrainingStateOptions){0});
  MUSTER_EXPECT_TRUE (fit (&second, FALSE, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (second.diary->str, "from 2.0: 2.0 2.1 2.2 3.0 3.1 3.2");
  MUSTER_EXPECT_EQ (weights (&second), 12);
  g_autofree char *after = names (in, NULL);
  MUSTER_EXPECT_STREQ (after, ""); /* deleted at the end */
}

/* B000.16 */
MUSTER_TEST (WorkerTrainingState, saved_by_batches_trains_none_again)
{
  g_autofree char *in = directory ();
  g_auto (Task) first = {0}, second = {0};
  g_autoptr (GError) error = NULL;
  const MusterWorkerTrainingStateOptions options = {
      .save_freq = {.kind = MUSTER_SAVE_EVERY_N, .n = 2}};
  set_up (&first, in, options);
  first.fails_at_epoch = 2;
  MUSTER_EXPECT_FALSE (fit (&first, TRUE, NULL)); /* 8 batches; all of them are saved */

  set_up (&second, in, options);
  MUSTER_EXPECT_TRUE (fit (&second, TRUE, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (second.diary->str, "from 2.2: 2.2 3.0 3.1 3.2");
  MUSTER_EXPECT_EQ (weights (&second), 12);
}

/* What a run before has seen of the epoch isn't counted again. */
MUSTER_TEST (WorkerTrainingState, counts_the_batches_since_it_came_back)
{
  g_autofree char *in = directory ();
  g_auto (Task) first = {0}, second = {0};
  g_autoptr (GError) error = NULL;
  const MusterWorkerTrainingStateOptions options = {
      .save_freq = {.kind = MUSTER_SAVE_EVERY_N, .n = 2}};
  set_up (&first, in, options);
  first.fails_at_epoch = 2;
  MUSTER_EXPECT_FALSE (fit (&first, TRUE, NULL));
  set_up (&second, in, options);
  MusterFitCallback callback = muster_worker_training_state_callback (second.state);
  MusterFitPosition start = {0, 0};

  MUSTER_EXPECT_TRUE (
      callback.train_begin (&start, 3, MUSTER_WAIT_FOREVER, NULL, second.state, &error));
  MUSTER_EXPECT_TRUE (callback.batch_end (2, 2, MUSTER_WAIT_FOREVER, NULL, second.state, &error));

  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_batch (second.state), 1);
}

/* B000.14 */
MUSTER_TEST (WorkerTrainingState, of_two_tasks_leaves_the_chiefs_alone)
{
  g_autofree char *in = directory ();
  g_autofree char *left = g_build_filename (in, "workertemp_1", NULL);
  g_autofree char *file = g_build_filename (left, "checkpoint", NULL);
  g_auto (Task) chief = {0}, worker = {0};
  MUSTER_ASSERT_EQ (g_mkdir_with_parents (left, 0700), 0);
  MUSTER_ASSERT_TRUE (g_file_set_contents (file, "of an earlier run", -1, NULL));
  set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});
  set_up (
      &worker, in,
      (MusterWorkerTrainingStateOptions){.is_worker = TRUE, .task_id = 1, .workers_write = TRUE});
  chief.fails_at_epoch = worker.fails_at_epoch = 3;

  MUSTER_EXPECT_FALSE (fit (&chief, FALSE, NULL));
  MUSTER_EXPECT_FALSE (fit (&worker, FALSE, NULL));
  g_clear_pointer (&worker.state, muster_worker_training_state_free);

  g_autofree char *after = names (in, NULL);
  MUSTER_EXPECT_STREQ (after, "chief");
}

/* --- what goes wrong in between --- */

/* D000.2 */
MUSTER_TEST (WorkerTrainingState, keeps_the_old_one_where_the_new_one_cannot_be_read)
{
  g_autofree char *in = directory ();
  g_auto (Task) chief = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterWatchedStorage) storage = muster_watched_storage_new ();
  set_up (&chief, in, (MusterWorkerTrainingStateOptions){.storage = MUSTER_STORAGE (storage)});
  back_up (&chief, 0, 1);

  muster_watched_storage_refuse (storage, "/ckpt-2.index");
  MUSTER_EXPECT_FALSE (
      muster_worker_training_state_back_up (chief.state, 1, -1, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (error != NULL);

  g_autofree char *there = names (in, "chief");
  g_autofree char *last = latest (in);
  MUSTER_EXPECT_STREQ (there, "checkpoint ckpt-1.data-00000-of-00002 ckpt-1.data-00001-of-00002 "
                              "ckpt-1.index");
  MUSTER_EXPECT_STREQ (last, "ckpt-1");
  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (chief.state), 0);
}

static void
replace (gpointer data)
{
  back_up (data, 1, 11);
}

/* D000.6: between the state file and the checkpoint that it names */
MUSTER_TEST (WorkerTrainingState, reads_the_new_one_where_the_chief_has_replaced_it_meanwhile)
{
  g_autofree char *in = directory ();
  g_auto (Task) chief = {0}, worker = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterWatchedStorage) storage = muster_watched_storage_new ();
  gboolean restored = FALSE;
  set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});
  back_up (&chief, 0, 10);
  set_up (
      &worker, in,
      (MusterWorkerTrainingStateOptions){.is_worker = TRUE, .storage = MUSTER_STORAGE (storage)});
  muster_watched_storage_call (storage, "/ckpt-1.index", replace, &chief);

  MUSTER_EXPECT_TRUE (muster_worker_training_state_restore (worker.state, &restored,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (restored);
  MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (worker.state), 1);
  MUSTER_EXPECT_EQ (weights (&worker), 11);
}

/* As far as its end has come when the worker reads. */
typedef struct {
  const char *in;
  gboolean is_half_done; /* the index is still there */
} Ending;

static void
end (gpointer data)
{
  const Ending *ending = data;
  static const char *const files[] = {"checkpoint", "ckpt-1.data-00000-of-00002",
                                      "ckpt-1.data-00001-of-00002", "ckpt-1.index"};
  for (gsize i = 0; i < G_N_ELEMENTS (files) - (ending->is_half_done ? 1 : 0); i++) {
    g_autofree char *path = g_build_filename (ending->in, "chief", files[i], NULL);
    MUSTER_EXPECT_EQ (unlink (path), 0);
  }
}

/* The chief's training has ended: there is no state, which isn't damage. */
MUSTER_TEST (WorkerTrainingState, begins_anew_where_the_chief_removes_it_meanwhile)
{
  static const char *const read_before[] = {"/ckpt-1.index", "/ckpt-1.data-00000-of-00002"};
  for (int i = 0; i < 4; i++) {
    g_autofree char *in = directory ();
    g_auto (Task) chief = {0}, worker = {0};
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterWatchedStorage) storage = muster_watched_storage_new ();
    gboolean restored = TRUE;
    Ending ending = {in, i & 1};
    MUSTER_TRACE ("before '%s', %s", read_before[i / 2], i & 1 ? "half" : "whole");
    set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});
    back_up (&chief, 0, 10);
    set_up (
        &worker, in,
        (MusterWorkerTrainingStateOptions){.is_worker = TRUE, .storage = MUSTER_STORAGE (storage)});
    muster_watched_storage_call (storage, read_before[i / 2], end, &ending);

    MUSTER_EXPECT_TRUE (muster_worker_training_state_restore (worker.state, &restored,
                                                              MUSTER_WAIT_FOREVER, NULL, &error));

    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_FALSE (restored);
    (void)muster_worker_training_state_delete_backup (chief.state, NULL);
  }
}

/* --- damage --- */

/* Two whole checkpoints, of epochs 0 and 1, as a crash between naming and removing leaves them. */
static void
save_two (const char *in)
{
  g_auto (Task) chief = {0};
  g_autofree char *read_dir = g_build_filename (in, "chief", NULL);
  g_autofree char *index = g_build_filename (read_dir, "ckpt-1.index", NULL);
  set_up (&chief, in, (MusterWorkerTrainingStateOptions){0});
  back_up (&chief, 0, 10);
  MusterStorageLock *reading =
      muster_storage_lock (muster_local_storage (), index, MUSTER_LOCK_SHARED, NULL);
  MUSTER_ASSERT_NOT_NULL (reading); /* whoever reads one keeps it from being removed */
  back_up (&chief, 1, 11);
  muster_storage_unlock (muster_local_storage (), reading);
}

static void
damage (const char *in, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (in, "chief", name, NULL);

  MUSTER_EXPECT_EQ (text ? !g_file_set_contents (path, text, -1, NULL) : unlink (path), 0);
}

MUSTER_TEST (WorkerTrainingState, restores_the_newest_that_is_whole)
{
  static const struct {
    const char *file, *text; /* NULL: it is gone */
    gint64 epoch;
  } damages[] = {{"ckpt-2.index", "garbage", 0},
                 {"ckpt-2.index", NULL, 0},
                 {"ckpt-2.data-00000-of-00002", "x", 0},
                 {"ckpt-2.data-00001-of-00002", NULL, 0},
                 {"checkpoint", "garbage", 1},
                 {"checkpoint", "", 1},
                 {"checkpoint", "model_checkpoint_path: \"another-7\"\n", 1},
                 {"checkpoint", NULL, 1}};

  for (gsize i = 0; i < G_N_ELEMENTS (damages); i++) {
    g_autofree char *in = directory ();
    g_auto (Task) task = {0};
    g_autoptr (GError) error = NULL;
    gboolean restored = FALSE;
    MUSTER_TRACE ("'%s' is '%s'", damages[i].file, damages[i].text ? damages[i].text : "gone");
    save_two (in);
    damage (in, damages[i].file, damages[i].text);
    set_up (&task, in, (MusterWorkerTrainingStateOptions){0});

    heard_begin (G_LOG_LEVEL_WARNING);
    MUSTER_EXPECT_TRUE (muster_worker_training_state_restore (task.state, &restored,
                                                              MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_EQ (heard_count ("restore", "Restored '*' as the training state: *"), 1U);
    heard_end ();

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (restored);
    MUSTER_EXPECT_EQ (muster_worker_training_state_saved_epoch (task.state), damages[i].epoch);
    MUSTER_EXPECT_EQ (weights (&task), 10 + damages[i].epoch);
    MUSTER_EXPECT_TRUE (muster_worker_training_state_delete_backup (task.state, &error));
  }
}

MUSTER_TEST (WorkerTrainingState, names_all_that_is_damaged)
{
  g_autofree char *in = directory ();
  g_auto (Task) task = {0};
  g_autoptr (GError) error = NULL;
  save_two (in);
  damage (in, "ckpt-2.index", "garbage");
  damage (in, "ckpt-1.index", "garbage");
  set_up (&task, in, (MusterWorkerTrainingStateOptions){0});
  set_weights (&task, 9);

  MUSTER_EXPECT_FALSE (
      muster_worker_training_state_restore (task.state, NULL, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_ASSERT_NOT_NULL (error);
  MUSTER_EXPECT_TRUE (strstr (error->message, "job/chief' failed: 'ckpt-2': ") != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, "; 'ckpt-1': ") != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (
      error->message,
      "; put back an undamaged checkpoint, or remove the directory to start again"));
  MUSTER_EXPECT_EQ (weights (&task), 9);
}

/* A backup that was being deleted when its process died is none. */
MUSTER_TEST (WorkerTrainingState, takes_what_nothing_names_and_is_not_whole_for_none)
{
  g_autofree char *in = directory ();
  g_auto (Task) task = {0};
  g_autoptr (GError) error = NULL;
  gboolean restored = TRUE;
  save_two (in);
  damage (in, "checkpoint", NULL);
  damage (in, "ckpt-1.data-00000-of-00002", NULL);
  damage (in, "ckpt-2.data-00000-of-00002", NULL);
  set_up (&task, in, (MusterWorkerTrainingStateOptions){0});

  MUSTER_EXPECT_TRUE (muster_worker_training_state_restore (task.state, &restored,
                                                            MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (restored);
}
