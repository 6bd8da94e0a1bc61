// SPDX-License-Identifier: Apache-2.0
/* One task of the soak's job, and a look at its checkpoints: see soak_test.py.
 *
 *   soak_task run TARGET DIRECTORY TASK N_TASKS N_BATCHES WORK|MODEL.meta PACE_US
 *   soak_task deal TARGET DIRECTORY SLOT N_SLOTS N_BATCHES WORK|MODEL.meta PACE_US
 *   soak_task check PREFIX N_TASKS|N_SLOTS
 *   soak_task write MODEL.meta WORK     (the model, for `muster train`)
 *   soak_task watch TARGET MODEL.meta   (until stdin ends; "stood SECONDS STEP UNTIL" for each that
 * is long)
 *
 * It tells on stdout "joined", or a chief "initialised", "restored PREFIX" or "continued STEP", for
 * each session that was made, "lost WHY", "saved PREFIX", "ended STEP" and "failed WHY". */
#include "checkpoint/state/checkpoint_state.h"
#include "master/remote/remote_master.h"
#include "master/remote/target.h"
#include "tests/doubles/seen_model.h"
#include "train/monitored_training.h"
#include "train/position/position.h"

#include <stdio.h>
#include <stdlib.h>

#define N_TRIES 100000

typedef struct {
  const char *target;
  const char *directory;
  guint task;
  guint n_tasks;
  gint64 n_batches;
  const char *model; /* a file, or the work of tests/doubles/seen_model.h's */
  gint64 pace_us;
  gboolean is_dealt; /* task is a slot, and n_tasks the number of slots */
} Arguments;

static void G_GNUC_PRINTF (1, 2) tell (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  vprintf (format, arguments);
  va_end (arguments);
  printf ("\n");
  fflush (stdout);
}

static gboolean
after_save (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
            gint64 step G_GNUC_UNUSED, const char *prefix, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  tell ("saved %s", prefix);
  return FALSE;
}

static void
on_made (MusterSessionObserver *observer G_GNUC_UNUSED, MusterSessionReport *report,
         const GError *error, gpointer data)
{
  const Arguments *a = data;
  if (error != NULL)
    return;
  if (report->continued)
    tell ("continued %" G_GINT64_FORMAT, report->continued_step);
  else if (report->restored_from != NULL)
    tell ("restored %s", report->restored_from);
  else
    tell (a->task > 0 ? "joined" : "initialised");
}

static void
on_lost (MusterSessionObserver *observer G_GNUC_UNUSED, const GError *why, guint n G_GNUC_UNUSED,
         gint64 pause_us G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  tell ("lost %s", why->message);
}

static MusterHook *
make_hook (const Arguments *a, MusterMaster *master, MusterBatches *batches, GError **error)
{
  static const char *const feeds[] = {"rows:0"};
  MusterPositionOptions options = {.task = a->task,
                                   .is_worker = a->task > 0,
                                   .master = master,
                                   .batches = batches,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .n_batches = a->n_batches,
                                   .settle_us = MUSTER_SECOND / 2,
                                   .hold_us = 10 * MUSTER_SECOND,
                                   .others_us = 120 * MUSTER_SECOND};
  return muster_position_hook_new (&options, error);
}

static MusterMonitoredSession *
make_session (const Arguments *a, MusterScaffold *scaffold, MusterMaster *master, MusterHook *hook,
              GError **error)
{
  static const MusterRetryPolicy recovery = {
      .budget = {[MUSTER_FAILURE_UNREACHABLE] = N_TRIES, [MUSTER_FAILURE_LOST_SESSION] = N_TRIES},
      .first_pause_us = 20 * MUSTER_MILLISECOND,
      .last_pause_us = 500 * MUSTER_MILLISECOND};
  g_autofree char *task = g_strdup_printf ("worker:%u", a->task);
  g_autoptr (MusterSaverObserver) saves = muster_saver_observer_new ();
  g_signal_connect (saves, "after-save", G_CALLBACK (after_save), NULL);
  g_autoptr (MusterSessionObserver) observer = muster_session_observer_new ();
  g_signal_connect (observer, "made", G_CALLBACK (on_made), (gpointer)a);
  g_signal_connect (observer, "lost", G_CALLBACK (on_lost), NULL);
  MusterMonitoredTrainingOptions options = {.scaffold = scaffold,
                                            .master = master,
                                            .is_worker = a->task > 0,
                                            .saving.checkpoint_dir = a->directory,
                                            .saving.save_us = 300 * MUSTER_MILLISECOND,
                                            .save_summaries_steps = MUSTER_NEVER,
                                            .log_step_count_steps = MUSTER_NEVER,
                                            .hooks = &hook,
                                            .n_hooks = 1,
                                            .saving.saver_observer = saves,
                                            .recovery = &recovery,
                                            .observer = observer,
                                            .manager.recovery_wait_us = 200 * MUSTER_MILLISECOND,
                                            .timeout_us = 60 * MUSTER_SECOND,
                                            .manager.model = "soak",
                                            .manager.task = task,
                                            .position_quiesce_us = 2 * MUSTER_SECOND};
  return muster_monitored_training_session_new (&options, NULL, NULL, error);
}

/* Until the job's batches are dealt. */
static gboolean
train (const Arguments *a, MusterMonitoredSession *session, MusterHook *hook, GError **error)
{
  static const char *const targets[] = {"train"};
  MusterStep step = {.targets = targets, .n_targets = 1};
  while (!muster_monitored_session_should_stop (session)) {
    gboolean trained;
    if (!muster_position_run (hook, session, &step, NULL, &trained, error))
      return FALSE;
    if (trained && a->pace_us > 0)
      g_usleep ((gulong)a->pace_us);
  }
  return TRUE;
}

static MusterScaffold *
make_scaffold (const Arguments *a, GError **error)
{
  g_autoptr (MusterMetaGraph) model =
      g_str_has_suffix (a->model, ".meta")
          ? muster_meta_graph_load (a->model, error)
          : muster_seen_model_new (&(MusterSeenModel){.work = atoll (a->model)});
  g_autoptr (MusterMetaGraph) extended = model == NULL ? NULL
                                         : a->is_dealt
                                             ? muster_position_add_dealt (model, a->n_tasks, error)
                                             : muster_position_add (model, a->n_tasks, error);
  return extended != NULL ? muster_scaffold_new (extended, error) : NULL;
}

static gboolean
run (const Arguments *a, GError **error)
{
  g_autoptr (MusterMaster) master = muster_master_new_for_target (a->target, error);
  g_autoptr (MusterScaffold) scaffold = master != NULL ? make_scaffold (a, error) : NULL;
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  g_autoptr (MusterHook) hook = scaffold != NULL ? make_hook (a, master, batches, error) : NULL;
  g_autoptr (MusterMonitoredSession) session =
      hook != NULL ? make_session (a, scaffold, master, hook, error) : NULL;
  GError *failure = NULL;

  if (session == NULL)
    return FALSE;
  (void)train (a, session, hook, &failure);
  gboolean done = muster_monitored_session_finish (session, failure, MUSTER_WAIT_FOREVER, error);
  g_clear_error (&failure);
  if (done)
    tell ("ended %" G_GINT64_FORMAT, muster_monitored_session_global_step (session));
  return done;
}

/* --- how long no step is made --- */

#define LOOK_US (10 * MUSTER_MILLISECOND)
#define LONG_US (300 * MUSTER_MILLISECOND)

typedef struct {
  MusterMaster *master;   /* (owned) */
  MusterGraph *graph;     /* (not owned) */
  MusterSession *session; /* (owned) (nullable) */
  gint64 step;            /* -1: none yet */
  gint64 changed_us;
} Watch;

/* -1 where there is no session, or no model in it. */
static gint64
look (Watch *self)
{
  const gint64 deadline_us = muster_clock_now_us (muster_system_clock ()) + MUSTER_SECOND;
  if (self->session == NULL)
    self->session =
        muster_master_create_session (self->master, self->graph, NULL, deadline_us, NULL, NULL);
  if (self->session == NULL)
    return -1;
  g_autoptr (MusterTensor) step =
      muster_session_fetch (self->session, "global_step:0", deadline_us, NULL, NULL);
  if (step == NULL)
    g_clear_object (&self->session);
  return step != NULL ? *(const gint64 *)muster_tensor_data (step) : -1;
}

static void
note (Watch *self, gint64 step)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (step < 0 || step == self->step)
    return;
  const gint64 stood_us = now_us - self->changed_us;
  if (self->step >= 0 && stood_us > LONG_US)
    tell ("stood %.3f %" G_GINT64_FORMAT " %.3f", (double)stood_us / MUSTER_SECOND, self->step,
          (double)now_us / MUSTER_SECOND);
  self->step = step;
  self->changed_us = now_us;
}

static gboolean
watch (const char *target, const char *path, GError **error)
{
  g_autoptr (MusterMetaGraph) model = muster_meta_graph_load (path, error);
  Watch self = {.step = -1};
  GPollFD input = {.fd = 0, .events = G_IO_IN | G_IO_HUP};
  if (model == NULL || (self.master = muster_master_new_for_target (target, error)) == NULL)
    return FALSE;
  self.graph = muster_meta_graph_graph (model);
  while (g_poll (&input, 1, LOOK_US / MUSTER_MILLISECOND) == 0)
    note (&self, look (&self));
  g_clear_object (&self.session);
  g_object_unref (self.master);
  return TRUE;
}

static int
check (const char *prefix, guint n_tasks)
{
  gint64 n_done = -1;
  g_autofree char *wrong = muster_seen_model_check (prefix, n_tasks, &n_done);

  tell ("%s %" G_GINT64_FORMAT " %s", wrong != NULL ? "wrong" : "well", n_done,
        wrong != NULL ? wrong : prefix);
  return wrong != NULL ? 1 : 0;
}

static gboolean
write_model (const char *path, gint64 work, GError **error)
{
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (&(MusterSeenModel){.work = work});
  gsize size;
  const char *data = g_bytes_get_data (muster_meta_graph_bytes (model), &size);
  return g_file_set_contents (path, data, (gssize)size, error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc == 4 && strcmp (argv[1], "check") == 0)
    return check (argv[2], (guint)atoi (argv[3]));
  if (argc == 4 && strcmp (argv[1], "write") == 0)
    return write_model (argv[2], atoll (argv[3]), &error) ? 0 : 4;
  if (argc == 4 && strcmp (argv[1], "watch") == 0)
    return watch (argv[2], argv[3], &error) ? 0 : 4;
  const gboolean is_dealt = argc > 1 && strcmp (argv[1], "deal") == 0;
  if (argc != 9 || (!is_dealt && strcmp (argv[1], "run") != 0)) {
    fprintf (stderr, "usage: see the top of soak_task.c\n");
    return 3;
  }
  Arguments a = {.target = argv[2],
                 .directory = argv[3],
                 .task = (guint)atoi (argv[4]),
                 .n_tasks = (guint)atoi (argv[5]),
                 .n_batches = atoll (argv[6]),
                 .model = argv[7],
                 .pace_us = atoll (argv[8]),
                 .is_dealt = is_dealt};
  if (run (&a, &error))
    return 0;
  tell ("failed %s", error->message);
  return 4;
}
