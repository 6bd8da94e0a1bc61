// SPDX-License-Identifier: Apache-2.0
/* A crowd on a simulated clock: tasks join a job whose batches are dealt, leave it, die and come
 * back from the dead, in any order; each batch is trained once. 200 tasks and 2,000 events; with
 * MUSTER_LONG 10,000 and 100,000. MUSTER_SEED says what happens. */
#include "base/error.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/monitored_training.h"

#include <stdlib.h>

/* Between two events, a few tasks make a step. */
#define STEPS_AN_EVENT 3

typedef struct _Crowd Crowd;

/* A process: in its slot, or, if another one is there by now, a sleeper that doesn't know yet. */
typedef struct {
  Crowd *crowd;
  guint slot;
  MusterHook *hook;                /* (owned) */
  MusterBatches *batches;          /* (owned) */
  MusterMonitoredSession *session; /* (owned) */
} Task;

struct _Crowd {
  guint n_slots, n_events;
  gint64 n_batches;
  GRand *random;
  MusterMaster *master;
  MusterClock *clock;
  MusterScaffold *scaffold;
  char *directory;
  gboolean *has_task; /* (array length=n_slots) the roster */
  guint64 version;
  guint n_takeovers;
  guint n_woken;       /* who made a step in a slot that was no longer theirs */
  GPtrArray *tasks;    /* (element-type Task) the chief first */
  GPtrArray *sleepers; /* (element-type Task) */
};

/* --- the roster --- */

static guint64
roster_version (gpointer data)
{
  return ((Crowd *)data)->version;
}

static gboolean
roster_has_task (guint slot, gpointer data)
{
  return ((Crowd *)data)->has_task[slot];
}

static void
set_slot (Crowd *self, guint slot, gboolean has_task)
{
  self->has_task[slot] = has_task;
  self->version++;
}

static gboolean
roster_claim (guint slot, gpointer data, GError **error)
{
  Crowd *self = data;
  if (self->has_task[slot])
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "slot %u has a task", slot);
  set_slot (self, slot, TRUE);
  self->n_takeovers++;
  return TRUE;
}

static void
roster_release (guint slot, gpointer data)
{
  set_slot (data, slot, FALSE);
}

/* n_slots: there is none. */
static guint
find_free_slot (const Crowd *self)
{
  guint slot = 0;
  while (slot < self->n_slots && self->has_task[slot])
    slot++;
  return slot;
}

/* --- tasks --- */

/* A crash: the session isn't ended. */
static void
task_free (gpointer data)
{
  Task *self = data;
  g_clear_object (&self->session);
  g_clear_object (&self->hook);
  g_clear_pointer (&self->batches, muster_batches_free);
  g_free (self);
}

static MusterHook *
make_hook (Task *self, gboolean is_worker)
{
  static const char *const feeds[] = {"rows:0"};
  Crowd *crowd = self->crowd;
  const SlotFuncs funcs = {roster_version, roster_has_task, roster_claim, roster_release};
  g_autoptr (MusterPositionSlots) slots = slots_new (&funcs, crowd);
  const MusterPositionOptions options = {.task = self->slot,
                                         .is_worker = is_worker,
                                         .slots = slots,
                                         .master = crowd->master,
                                         .batches = self->batches,
                                         .feeds = feeds,
                                         .n_feeds = 1,
                                         .n_batches = crowd->n_batches,
                                         .clock = crowd->clock};
  g_autoptr (GError) error = NULL;
  MusterHook *hook = muster_position_hook_new (&options, &error);
  g_assert_no_error (error);
  return hook;
}

static MusterMonitoredSession *
open_session (Task *self, gboolean is_worker)
{
  Crowd *crowd = self->crowd;
  const MusterMonitoredTrainingOptions options = {.scaffold = crowd->scaffold,
                                                  .master = crowd->master,
                                                  .is_worker = is_worker,
                                                  .saving.checkpoint_dir = crowd->directory,
                                                  .saving.save_steps = crowd->n_batches / 4,
                                                  .saving.save_blocking = TRUE,
                                                  .save_summaries_steps = MUSTER_NEVER,
                                                  .log_step_count_steps = MUSTER_NEVER,
                                                  .hooks = &self->hook,
                                                  .n_hooks = 1,
                                                  .manager.clock = crowd->clock};
  g_autoptr (GError) error = NULL;
  MusterMonitoredSession *session =
      muster_monitored_training_session_new (&options, NULL, NULL, &error);
  g_assert_no_error (error);
  return session;
}

static Task *
task_new (Crowd *crowd, guint slot, gboolean is_worker)
{
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  Task *self = g_new0 (Task, 1);
  self->crowd = crowd;
  self->slot = slot;
  self->batches = muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  self->hook = make_hook (self, is_worker);
  self->session = open_session (self, is_worker);
  return self;
}

static void
join (Crowd *crowd)
{
  const guint slot = find_free_slot (crowd);
  set_slot (crowd, slot, TRUE);
  g_ptr_array_add (crowd->tasks, task_new (crowd, slot, crowd->tasks->len > 0));
}

static gboolean
step (Task *self, GError **error)
{
  static const char *const targets[] = {"train"};
  const MusterStep what = {.targets = targets, .n_targets = 1};
  return muster_position_run (self->hook, self->session, &what, NULL, NULL, error);
}

static gboolean
has_ended (const Task *self)
{
  return muster_monitored_session_should_stop (self->session);
}

/* Also where a sleeper has made a step in its slot as it woke. */
static void
step_at (Crowd *self, guint i)
{
  g_autoptr (GError) error = NULL;
  Task *task = self->tasks->pdata[i];
  if (!has_ended (task))
    MUSTER_EXPECT_TRUE (step (task, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
step_one (Crowd *self)
{
  step_at (self, (guint)g_rand_int_range (self->random, 0, (gint32)self->tasks->len));
}

/* --- what happens --- */

/* Any but the chief. */
static guint
choose (Crowd *self)
{
  return (guint)g_rand_int_range (self->random, 1, (gint32)self->tasks->len);
}

static void
leave (Crowd *self)
{
  g_autoptr (GError) error = NULL;
  const guint i = choose (self);
  Task *task = self->tasks->pdata[i];
  set_slot (self, task->slot, FALSE);
  muster_monitored_session_finish (task->session, NULL, MUSTER_WAIT_FOREVER, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_ptr_array_remove_index_fast (self->tasks, i);
}

static void
die (Crowd *self)
{
  const guint i = choose (self);
  Task *task = self->tasks->pdata[i];
  set_slot (self, task->slot, FALSE);
  g_ptr_array_remove_index_fast (self->tasks, i);
}

/* Its lease runs out while it is stopped. */
static void
fall_asleep (Crowd *self)
{
  const guint i = choose (self);
  Task *task = g_ptr_array_steal_index_fast (self->tasks, i);
  set_slot (self, task->slot, FALSE);
  g_ptr_array_add (self->sleepers, task);
}

/* It goes on as if nothing had happened: where its slot has made a step without it, it fails. */
static void
wake (Crowd *self)
{
  g_autoptr (GError) error = NULL;
  const guint i = (guint)g_rand_int_range (self->random, 0, (gint32)self->sleepers->len);
  Task *task = self->sleepers->pdata[i];
  if (!has_ended (task))
    self->n_woken += step (task, &error) && self->has_task[task->slot];
  g_ptr_array_remove_index_fast (self->sleepers, i);
}

static void
happen (Crowd *self)
{
  const gboolean may_join = find_free_slot (self) < self->n_slots;
  switch (g_rand_int_range (self->random, may_join ? 0 : 2, 8)) {
  case 0:
  case 1:
  case 2:
  case 3:
    if (may_join)
      join (self);
    break;
  case 4:
    if (self->tasks->len > 1)
      leave (self);
    break;
  case 5:
    if (self->tasks->len > 1)
      die (self);
    break;
  case 6:
    if (self->tasks->len > 1)
      fall_asleep (self);
    break;
  default:
    if (self->sleepers->len > 0)
      wake (self);
  }
}

/* --- the job --- */

static void
crowd_init (Crowd *self, gboolean is_long)
{
  const char *seed = g_getenv ("MUSTER_SEED");
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (GError) error = NULL;
  *self = (Crowd){.n_slots = is_long ? 10000 : 200, .n_events = is_long ? 100000 : 2000};
  self->n_batches = (gint64)self->n_events * STEPS_AN_EVENT / 2;
  self->random = g_rand_new_with_seed (seed != NULL ? (guint32)strtoul (seed, NULL, 10) : 1);
  self->master = muster_local_master_new ();
  self->clock = MUSTER_CLOCK (muster_fake_clock_new ());
  g_autoptr (MusterMetaGraph) dealt = muster_position_add_dealt (model, self->n_slots, &error);
  g_assert_no_error (error);
  self->scaffold = muster_scaffold_new (dealt, &error);
  g_assert_no_error (error);
  self->directory = g_build_filename (muster_test_tmpdir (), "crowd", NULL);
  self->has_task = g_new0 (gboolean, self->n_slots);
  self->tasks = g_ptr_array_new_with_free_func (task_free);
  self->sleepers = g_ptr_array_new_with_free_func (task_free);
}

static void
crowd_clear (Crowd *self)
{
  g_ptr_array_unref (self->sleepers);
  g_ptr_array_unref (self->tasks);
  g_free (self->has_task);
  g_free (self->directory);
  muster_scaffold_unref (self->scaffold);
  g_object_unref (self->clock);
  g_object_unref (self->master);
  g_rand_free (self->random);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Crowd, crowd_clear)

/* All go on, in turns, until the chief has ended the job. */
static void
finish (Crowd *self)
{
  Task *chief = self->tasks->pdata[0];
  g_autoptr (GError) error = NULL;
  for (gint64 turn = 0; turn < 2 * self->n_batches && !has_ended (chief); turn++)
    for (guint i = 0; i < self->tasks->len; i++)
      step_at (self, i);
  MUSTER_EXPECT_TRUE (has_ended (chief));
  muster_monitored_session_finish (chief->session, NULL, MUSTER_WAIT_FOREVER, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (PositionCrowd, trains_each_batch_once)
{
  g_auto (Crowd) crowd = {0};
  crowd_init (&crowd, g_getenv ("MUSTER_LONG") != NULL);
  join (&crowd);
  for (guint i = 0; i < crowd.n_events; i++) {
    happen (&crowd);
    for (int n = 0; n < STEPS_AN_EVENT; n++)
      step_one (&crowd);
  }

  finish (&crowd);

  g_autofree char *latest =
      muster_latest_checkpoint (muster_local_storage (), crowd.directory, NULL);
  gint64 n_done = -1;
  g_autofree char *wrong = muster_seen_model_check (latest, crowd.n_slots, &n_done);
  MUSTER_EXPECT_STREQ (wrong, NULL);
  MUSTER_EXPECT_EQ (n_done, crowd.n_batches);
  MUSTER_EXPECT_GT (crowd.n_takeovers, 0u);
  MUSTER_EXPECT_GT (crowd.n_woken, 0u);
}
