// SPDX-License-Identifier: Apache-2.0
#include "tests/train/position_fixture.h"

#include "base/error.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "master/remote/remote_master.h"
#include "master/remote/target.h"
#include "saver/builder/saver_builder.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/held_port.h"
#include "train/monitored_training.h"
#include "train/position/position_private.h"

#include <signal.h>

Job
job_set_up (guint n_tasks)
{
  Job job = {.master = muster_local_master_new (),
             .directory = g_build_filename (muster_test_tmpdir (), "run", NULL),
             .n_tasks = n_tasks,
             .save_steps = 3,
             .wrong = g_string_new (NULL)};
  g_mutex_init (&job.lock);
  return job;
}

Job
job_set_up_served (guint n_tasks)
{
  Job job = job_set_up (n_tasks);
  g_autoptr (GError) error = NULL;
  g_autofree char *address = NULL;
  job.held = test_hold_port (&address);
  job.server = muster_server_new (job.master, NULL);
  muster_server_listen (job.server, address, &error);
  g_assert_no_error (error);
  muster_server_start (job.server);
  g_clear_object (&job.master);
  g_autofree char *target = g_strconcat ("grpc://", address, NULL);
  job.master = muster_master_new_for_target (target, &error);
  g_assert_no_error (error);
  g_free (job.directory);
  job.directory = g_build_filename (muster_test_tmpdir (), "served", NULL);
  return job;
}

Job
job_set_up_dealt (gboolean is_served, const char *name)
{
  Job job = is_served ? job_set_up_served (JOB_SLOTS) : job_set_up (JOB_SLOTS);
  job.is_dealt = TRUE;
  job_name_directory (&job, name);
  return job;
}

void
job_name_directory (Job *job, const char *name)
{
  g_free (job->directory);
  job->directory = g_build_filename (muster_test_tmpdir (), name, NULL);
}

void
job_tear_down (Job *job)
{
  MUSTER_EXPECT_STREQ (job->wrong->str, "");
  g_string_free (job->wrong, TRUE);
  g_clear_object (&job->master);
  g_clear_pointer (&job->server, muster_server_free);
  g_clear_object (&job->held);
  g_free (job->directory);
  g_mutex_clear (&job->lock);
}

static gboolean
after_save (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
            gint64 step G_GNUC_UNUSED, const char *prefix, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  Job *job = data;
  gint64 n_done = -1;
  g_autofree char *wrong = muster_seen_model_check (prefix, job->n_tasks, &n_done);

  if (wrong == NULL && n_done != muster_checkpoint_step (prefix))
    wrong = g_strdup_printf ("%" G_GINT64_FORMAT " batches are done", n_done);
  g_mutex_lock (&job->lock);
  job->n_saved++;
  if (wrong != NULL)
    g_string_append_printf (job->wrong, "%s: %s\n", prefix, wrong);
  g_mutex_unlock (&job->lock);
  if (job->preempts_at_save)
    muster_preemption_request (job->preemption, SIGTERM);
  return FALSE;
}

Prepared
prepared_set_up (MusterMetaGraph *extended)
{
  g_autoptr (MusterMetaGraph) owned = extended;
  g_autoptr (GError) error = NULL;
  Prepared prepared = {.scaffold = muster_scaffold_new (owned, &error),
                       .master = muster_local_master_new ()};
  g_assert_no_error (error);
  prepared.session =
      muster_master_create_session (prepared.master, muster_scaffold_graph (prepared.scaffold),
                                    NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  muster_session_run_op (prepared.session, muster_scaffold_init_op (prepared.scaffold),
                         MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  g_autoptr (MusterTensor) all = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches = muster_batches_new (&all, 1, MUSTER_SEEN_BATCH, 0, NULL);
  muster_batches_next (batches, &prepared.rows);
  return prepared;
}

void
prepared_tear_down (Prepared *prepared)
{
  g_clear_pointer (&prepared->rows, muster_tensor_unref);
  g_clear_object (&prepared->session);
  g_clear_object (&prepared->master);
  g_clear_pointer (&prepared->scaffold, muster_scaffold_unref);
}

/* --- slots --- */

#define MUSTER_TYPE_TEST_SLOTS (muster_test_slots_get_type ())
G_DECLARE_FINAL_TYPE (MusterTestSlots, muster_test_slots, MUSTER, TEST_SLOTS, GObject)

struct _MusterTestSlots {
  GObject parent;
  SlotFuncs funcs;
  gpointer data; /* (not owned) */
};

static void test_slots_iface (MusterPositionSlotsInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterTestSlots, muster_test_slots, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_POSITION_SLOTS, test_slots_iface))

static guint64
test_slots_version (MusterPositionSlots *slots)
{
  return MUSTER_TEST_SLOTS (slots)->funcs.version (MUSTER_TEST_SLOTS (slots)->data);
}

static gboolean
test_slots_has_task (MusterPositionSlots *slots, guint slot)
{
  return MUSTER_TEST_SLOTS (slots)->funcs.has_task (slot, MUSTER_TEST_SLOTS (slots)->data);
}

static gboolean
test_slots_claim (MusterPositionSlots *slots, guint slot, gint64 deadline_us G_GNUC_UNUSED,
                  GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  return MUSTER_TEST_SLOTS (slots)->funcs.claim (slot, MUSTER_TEST_SLOTS (slots)->data, error);
}

static void
test_slots_release (MusterPositionSlots *slots, guint slot)
{
  MUSTER_TEST_SLOTS (slots)->funcs.release (slot, MUSTER_TEST_SLOTS (slots)->data);
}

static void
test_slots_iface (MusterPositionSlotsInterface *iface)
{
  iface->version = test_slots_version;
  iface->has_task = test_slots_has_task;
  iface->claim = test_slots_claim;
  iface->release = test_slots_release;
}

static void
muster_test_slots_class_init (MusterTestSlotsClass *klass G_GNUC_UNUSED)
{
}

static void
muster_test_slots_init (MusterTestSlots *self G_GNUC_UNUSED)
{
}

MusterPositionSlots *
slots_new (const SlotFuncs *funcs, gpointer data)
{
  MusterTestSlots *self = g_object_new (MUSTER_TYPE_TEST_SLOTS, NULL);
  self->funcs = *funcs;
  self->data = data;
  return MUSTER_POSITION_SLOTS (self);
}

void
board_enter (Board *board, guint slot)
{
  g_mutex_lock (&board->lock);
  board->has_task[slot] = TRUE;
  board->version++;
  g_mutex_unlock (&board->lock);
}

void
board_leave (Board *board, guint slot)
{
  g_mutex_lock (&board->lock);
  board->has_task[slot] = FALSE;
  board->version++;
  g_mutex_unlock (&board->lock);
}

static guint64
slots_version (gpointer data)
{
  Board *board = data;
  g_mutex_lock (&board->lock);
  guint64 version = board->version;
  g_mutex_unlock (&board->lock);
  return version;
}

static gboolean
slots_has_task (guint slot, gpointer data)
{
  Board *board = data;
  g_mutex_lock (&board->lock);
  gboolean has_task = board->has_task[slot];
  g_mutex_unlock (&board->lock);
  return has_task;
}

static gboolean
slots_claim (guint slot, gpointer data, GError **error)
{
  Board *board = data;
  g_mutex_lock (&board->lock);
  gboolean is_free = !board->has_task[slot];
  if (is_free) {
    board->has_task[slot] = TRUE;
    board->version++;
    board->n_claims++;
  } else {
    board->n_refused++;
  }
  g_mutex_unlock (&board->lock);
  return is_free || muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "slot %u is taken", slot);
}

static void
slots_release (guint slot, gpointer data)
{
  board_leave (data, slot);
}

MusterPositionSlots *
board_slots (Board *board)
{
  const SlotFuncs funcs = {slots_version, slots_has_task, slots_claim, slots_release};
  return slots_new (&funcs, board);
}

static gboolean
is_worker (const Life *life)
{
  return life->is_worker || (life->task > 0 && !life->job->is_dealt);
}

MusterHook *
life_hook (Life *life)
{
  static const char *const feeds[] = {"rows:0"};
  MusterPositionOptions options = {.task = life->task,
                                   .is_worker = is_worker (life),
                                   .slots = life->slots,
                                   .master = life->job->own_masters ? NULL : life->job->master,
                                   .own_masters = life->job->own_masters,
                                   .batches = life->batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .n_batches = life->job->n_batches,
                                   .settle_us = life->job->own_masters ? life->settle_us
                                                                       : 20 * MUSTER_MILLISECOND,
                                   .hold_us = life->hold_us,
                                   .clock = life->clock,
                                   .others_us = life->job->own_masters ? 0 : JOB_LIMIT_US};
  return muster_position_hook_new (&options, &life->error);
}

void
life_begin (Life *life)
{
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (&(MusterSeenModel){
      .work = life->work > 0 ? life->work : life->job->work, .on_server = life->job->own_masters});
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (MusterMetaGraph) extended =
      life->job->is_dealt ? muster_position_add_dealt (model, life->job->n_tasks, &life->error)
                          : muster_position_add (model, life->job->n_tasks, &life->error);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  g_signal_connect (observer, "after-save", G_CALLBACK (after_save), life->job);

  g_assert_no_error (life->error);
  life->scaffold = muster_scaffold_new (extended, &life->error);
  g_assert_no_error (life->error);
  life->batches = muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  life->hook = life_hook (life);
  MusterMonitoredTrainingOptions options = {.scaffold = life->scaffold,
                                            .master = life->job->master,
                                            .is_worker = is_worker (life),
                                            .saving.checkpoint_dir = life->job->directory,
                                            .saving.save_steps = life->job->save_steps,
                                            .saving.save_blocking = !life->job->saves_in_background,
                                            .save_summaries_steps = MUSTER_NEVER,
                                            .log_step_count_steps = MUSTER_NEVER,
                                            .hooks = &life->hook,
                                            .n_hooks = 1,
                                            .saving.saver_observer = observer,
                                            .timeout_us = JOB_LIMIT_US,
                                            .manager.model =
                                                life->job->server != NULL ? "seen" : NULL,
                                            .saving.preemption = life->job->preemption,
                                            .position_quiesce_us = life->job->quiesce_us,
                                            .own_masters = life->job->own_masters,
                                            .always_restore = life->always_restores};
  GCancellable *cancellable = options.saving.preemption != NULL
                                  ? muster_preemption_cancellable (options.saving.preemption)
                                  : NULL;
  life->session =
      muster_monitored_training_session_new (&options, &report, cancellable, &life->error);
  life->continued = report.continued;
}

gboolean
life_step (Life *life)
{
  static const char *const targets[] = {"train"};
  MusterStep what = {.targets = targets, .n_targets = 1};
  return muster_position_run (life->hook, life->session, &what, NULL, NULL, &life->error);
}

void
life_end (Life *life)
{
  g_clear_object (&life->session);
  g_clear_object (&life->hook);
  g_clear_pointer (&life->batches, muster_batches_free);
  g_clear_pointer (&life->scaffold, muster_scaffold_unref);
  g_clear_error (&life->error);
}

gpointer
life_live (gpointer data)
{
  Life *life = data;
  if (life->session == NULL)
    life_begin (life);
  if (life->session == NULL)
    return NULL;
  while (!muster_monitored_session_should_stop (life->session) && life_step (life))
    ;
  life->n_recoveries = muster_monitored_session_n_recoveries (life->session);
  GError *failure = life->error;
  life->error = NULL;
  muster_monitored_session_finish (life->session, failure, MUSTER_WAIT_FOREVER, &life->error);
  g_clear_error (&failure);
  return NULL;
}

char *
job_check_latest (Job *job, gint64 n_batches)
{
  g_autofree char *latest =
      muster_latest_checkpoint (muster_local_storage (), job->directory, NULL);
  gint64 n_done = -1;
  char *wrong = latest != NULL ? muster_seen_model_check (latest, job->n_tasks, &n_done)
                               : g_strdup ("there is no checkpoint");

  if (wrong == NULL && n_done != n_batches)
    wrong = g_strdup_printf ("%" G_GINT64_FORMAT " batches are done", n_done);
  return wrong;
}

void
job_run_dealt (Job *job, guint n_tasks)
{
  g_autofree Life *lives = g_new0 (Life, n_tasks);
  g_autofree GThread **threads = g_new0 (GThread *, n_tasks);
  Board board = {0};
  g_autoptr (MusterPositionSlots) slots = board_slots (&board);

  for (guint i = 0; i < n_tasks; i++) {
    board_enter (&board, i);
    lives[i] = (Life){.job = job, .task = i, .is_worker = i > 0, .slots = slots};
  }
  for (guint i = 0; i < n_tasks; i++)
    threads[i] = g_thread_new ("task", life_live, &lives[i]);
  for (guint i = 0; i < n_tasks; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (lives[i].error);
    life_end (&lives[i]);
  }
  MUSTER_EXPECT_EQ (board.n_claims, 0u);
}

void
life_run_to_end (Life *life, gint64 n_batches)
{
  life_live (life);
  MUSTER_EXPECT_NO_ERROR (life->error);
  g_autofree char *wrong = job_check_latest (life->job, n_batches);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

gboolean
job_save_from_beside (Job *job, gboolean finds_positions, gint64 number, GError **error)
{
  const MusterPositionGuard guard = {.is_apart = TRUE, .global_step = "global_step"};
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){.work = job->work});
  g_autoptr (MusterMetaGraph) found =
      finds_positions
          ? muster_position_find (job->master, plain, NULL, MUSTER_WAIT_FOREVER, NULL, error)
          : muster_meta_graph_ref (plain);
  g_autoptr (MusterMetaGraph) model = found != NULL ? muster_saver_default (found, error) : NULL;
  g_autoptr (MusterSaver) saver = model != NULL ? muster_saver_new (model, NULL, error) : NULL;
  g_autoptr (MusterSession) session =
      saver != NULL ? muster_master_create_session (job->master, muster_meta_graph_graph (model),
                                                    NULL, MUSTER_WAIT_FOREVER, NULL, error)
                    : NULL;

  if (session == NULL)
    return FALSE;
  muster_position_guard (saver, model, &guard);
  g_autofree char *prefix =
      muster_saver_adopt_directory (saver, job->directory, error)
          ? muster_saver_save (saver, session, job->directory, number,
                               g_get_monotonic_time () + JOB_LIMIT_US, NULL, error)
          : NULL;
  gint64 n_done = -1;
  g_autofree char *wrong = prefix != NULL && finds_positions
                               ? muster_seen_model_check (prefix, job->n_tasks, &n_done)
                               : NULL;
  MUSTER_EXPECT_STREQ (wrong, NULL);
  if (prefix != NULL && finds_positions) /* it is called by the step that it holds */
    MUSTER_EXPECT_EQ (muster_checkpoint_step (prefix), n_done);
  return prefix != NULL;
}

void
job_cut_off_a_step (Job *job, MusterScaffold *scaffold, gint64 task)
{
  static const char *const target = "muster/step/begin";
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_master_create_session (
      job->master, muster_scaffold_graph (scaffold), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  g_auto (MusterPositionState) state = {.is_dealt = job->is_dealt};
  muster_position_read (session, job->n_tasks, &state, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  g_autoptr (MusterTensor) which = muster_tensor_new_int64 (task);
  g_autoptr (MusterTensor) where =
      muster_tensor_new_int64 (muster_position_done (&state, (guint)task));
  const MusterFeed feeds[] = {{MUSTER_POSITION_TASK, which}, {MUSTER_POSITION_POSITION, where}};
  MusterStep what = {.feeds = feeds, .n_feeds = 2, .targets = &target, .n_targets = 1};

  MUSTER_EXPECT_TRUE (muster_session_run (session, &what, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

gint64
life_in_hand (Life *life, guint slot)
{
  g_auto (MusterPositionState) state = {.is_dealt = TRUE};
  g_autoptr (GError) error = NULL;
  muster_position_read (muster_monitored_session_session (life->session), JOB_SLOTS, &state,
                        MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return error == NULL ? muster_position_taken (&state, slot) : G_MININT64;
}

void
life_step_apart (Life *life, const char *kind, gint64 slot, gint64 position, gint64 deal)
{
  g_autofree char *held = g_strconcat (kind, "/held", NULL);
  const char *const targets[] = {held};
  g_autoptr (MusterTensor) which = muster_tensor_new_int64 (slot);
  g_autoptr (MusterTensor) where = muster_tensor_new_int64 (position);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  g_autoptr (MusterTensor) batch = NULL;
  g_autoptr (GError) error = NULL;

  muster_batches_seek (batches, deal);
  muster_batches_next (batches, &batch);
  const MusterFeed feeds[] = {
      {"rows:0", batch}, {MUSTER_POSITION_TASK, which}, {MUSTER_POSITION_POSITION, where}};
  const MusterStep step = {.feeds = feeds, .n_feeds = 3, .targets = targets, .n_targets = 1};
  MUSTER_EXPECT_TRUE (muster_session_run (muster_monitored_session_session (life->session), &step,
                                          NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

void
life_set_hold (Life *life, gint64 hold)
{
  g_autoptr (GError) error = NULL;
  muster_position_set_hold (muster_monitored_session_session (life->session), hold,
                            MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}
