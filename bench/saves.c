// SPDX-License-Identifier: Apache-2.0
/* Training that saves every second, in the background or blocking, against training that never
 * does: steps per second, and the slowest step. Before that, steps after a process's first save
 * against those before it. */
#include "bench/bench.h"

#include "engine/session/local_master.h"
#include "saver/saver.h"
#include "train/monitored_training.h"

#include <glib/gstdio.h>
#include <string.h>

#define N_VARIABLES 4
#define N_ROUNDS    3
#define N_WARM      3
#define N_COPIES    7
#define N_WINDOWS   5 /* on either side of the first save */
#define WINDOW_S    0.5
#define SMALL_SIDE  809

typedef enum { NEVER, BACKGROUND, BLOCKING, N_WAYS } Way;

/* Of one way, a number for each round. */
typedef struct {
  GArray *rate;    /* (owned) (element-type double) steps per second */
  GArray *slowest; /* (owned) (element-type double) */
} Figures;

typedef struct {
  const char *size;
  gint32 side;
  double seconds; /* of a round */
  double share;   /* of the steps that a save in the background should leave */
} Model;

static void
figures_init (Figures *self)
{
  self->rate = g_array_new (FALSE, FALSE, sizeof (double));
  self->slowest = g_array_new (FALSE, FALSE, sizeof (double));
}

static void
figures_clear (Figures *self)
{
  g_array_unref (self->rate);
  g_array_unref (self->slowest);
}

static void
figures_add (Figures *self, double rate, double slowest)
{
  g_array_append_val (self->rate, rate);
  g_array_append_val (self->slowest, slowest);
}

static MusterMonitoredSession *
open_session (MusterScaffold *scaffold, MusterMaster *master, Way way, const char *directory)
{
  g_autoptr (GError) error = NULL;
  const MusterMonitoredTrainingOptions options = {.scaffold = scaffold,
                                                  .master = master,
                                                  .saving.checkpoint_dir =
                                                      way == NEVER ? NULL : directory,
                                                  .saving.save_us = MUSTER_SECOND,
                                                  .saving.save_blocking = way == BLOCKING,
                                                  .save_summaries_steps = MUSTER_NEVER,
                                                  .log_step_count_steps = MUSTER_NEVER};
  MusterMonitoredSession *session =
      muster_monitored_training_session_new (&options, NULL, NULL, &error);
  bench_check (error, "making a monitored session");
  return session;
}

static void
step (MusterMonitoredSession *session)
{
  static const char *const targets[] = {"train"};
  static const MusterStep what = {.targets = targets, .n_targets = 1};
  g_autoptr (GError) error = NULL;
  (void)muster_monitored_session_run (session, &what, NULL, NULL, &error);
  bench_check (error, "a step of training");
}

static void
train (MusterMonitoredSession *session, double seconds, Figures *figures)
{
  double slowest = 0;
  int n = 0;
  for (int i = 0; i < N_WARM; i++)
    step (session);
  const double started = bench_now_s ();
  double now = started;
  for (; now - started < seconds; n++) {
    const double began = now;
    step (session);
    now = bench_now_s ();
    slowest = MAX (slowest, now - began);
  }
  figures_add (figures, n / (now - started), slowest);
}

static void
measure (MusterMetaGraph *meta_graph, const Model *model, Way way, Figures *figures)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = bench_make_folder ();
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const MusterScaffoldOptions options = {.init_op = "init"};
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new_with (meta_graph, &options, &error);
  bench_check (error, "making a scaffold");
  g_autoptr (MusterMonitoredSession) session = open_session (scaffold, master, way, directory);
  train (session, model->seconds, figures);
  (void)muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, &error);
  bench_check (error, "ending the training");
  bench_remove_folder (directory);
}

/* FALSE without TensorFlow. */
static gboolean
measure_tensorflow (const char *meta, const Model *model, gboolean saves, Figures *figures)
{
  g_autofree char *directory = bench_make_folder ();
  g_autofree char *seconds = g_strdup_printf ("%g", model->seconds);
  const char *arguments[] = {meta, directory, saves ? "1" : "0", seconds, NULL};
  g_autoptr (BenchChild) child = bench_tensorflow_child ("tensorflow_saves.py", arguments);
  if (child == NULL)
    return FALSE;
  g_autofree char *line = bench_child_line (child);
  double rate = 0, slowest = 0;
  if (sscanf (line, "%lf %lf", &rate, &slowest) != 2)
    bench_fail ("tensorflow_saves.py printed '%s'", line);
  figures_add (figures, rate, slowest);
  bench_remove_folder (directory);
  return TRUE;
}

/* Into memory that is there already. */
static double
copy_s (gsize size)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (double));
  g_autofree char *from = g_malloc (size);
  g_autofree char *to = g_malloc (size);
  memset (from, 1, size);
  memset (to, 2, size);
  for (int i = 0; i < N_COPIES; i++) {
    const double started = bench_now_s ();
    memcpy (to, from, size);
    __asm__ volatile("" : : "r"(to) : "memory");
    const double took = bench_now_s () - started;
    g_array_append_val (all, took);
  }
  return bench_median (all);
}

/* The median of one way's rate over another's, round by round. */
static double
ratio (const Figures *self, const Figures *other)
{
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < self->rate->len; i++) {
    const double each =
        g_array_index (self->rate, double, i) / g_array_index (other->rate, double, i);
    g_array_append_val (ratios, each);
  }
  return bench_median (ratios);
}

static void
print_share (const Model *model, const char *what, double share, double theirs, const char *name,
             double at_most_lost)
{
  g_autofree char *row =
      g_strdup_printf ("%s, saves every second: steps lost, %s", model->size, what);
  bench_print (&(BenchRow){.what = row,
                           .unit = BENCH_SHARE,
                           .muster = MAX (1 - share, 0),
                           .other = MAX (1 - theirs, 0),
                           .name = name,
                           .bound = at_most_lost});
}

static void
compare (const Model *model)
{
  g_autoptr (MusterMetaGraph) meta_graph = bench_updated_model (N_VARIABLES, model->side);
  g_autofree char *meta = bench_model_file (muster_meta_graph_bytes (meta_graph));
  const double copied_s = copy_s ((gsize)model->side * (gsize)model->side * sizeof (float));
  Figures ways[N_WAYS], theirs[2];
  gboolean has_tensorflow = TRUE;
  for (int i = 0; i < N_WAYS; i++)
    figures_init (&ways[i]);
  figures_init (&theirs[0]);
  figures_init (&theirs[1]);
  for (int round = 0; round < N_ROUNDS; round++) {
    for (int i = 0; i < N_WAYS; i++)
      measure (meta_graph, model, (Way)i, &ways[i]);
    has_tensorflow = has_tensorflow && measure_tensorflow (meta, model, FALSE, &theirs[0]) &&
                     measure_tensorflow (meta, model, TRUE, &theirs[1]);
  }
  const char *name = has_tensorflow ? "TensorFlow" : NULL;
  const double theirs_share = has_tensorflow ? ratio (&theirs[1], &theirs[0]) : 1;
  const double a_step_s = 1 / bench_median (ways[NEVER].rate);
  print_share (model, "background", ratio (&ways[BACKGROUND], &ways[NEVER]), theirs_share, name,
               1 - model->share);
  print_share (model, "blocking", ratio (&ways[BLOCKING], &ways[NEVER]), theirs_share, name, 0);
  bench_print (&(BenchRow){.what = "  the slowest step, background",
                           .muster = bench_median (ways[BACKGROUND].slowest),
                           .other = has_tensorflow ? bench_median (theirs[1].slowest) : 0,
                           .name = name,
                           .bound = 1.2 * (a_step_s + copied_s)});
  bench_print (&(BenchRow){.what = "  the slowest step, blocking",
                           .muster = bench_median (ways[BLOCKING].slowest)});
  bench_print (&(BenchRow){.what = "  the slowest step without a save",
                           .muster = bench_median (ways[NEVER].slowest)});
  bench_print (&(BenchRow){.what = "  a step without a save", .muster = a_step_s});
  for (int i = 0; i < N_WAYS; i++)
    figures_clear (&ways[i]);
  figures_clear (&theirs[0]);
  figures_clear (&theirs[1]);
  (void)g_unlink (meta);
}

/* --- around the first save --- */

/* Steps per second. */
static double
window (MusterSession *session)
{
  g_autoptr (GError) error = NULL;
  const double started = bench_now_s ();
  int n = 0;
  for (; bench_now_s () - started < WINDOW_S; n++)
    if (!muster_session_run_op (session, "train", MUSTER_WAIT_FOREVER, NULL, &error))
      break;
  bench_check (error, "a step around a save");
  return n / (bench_now_s () - started);
}

static double
windows (MusterSession *session)
{
  g_autoptr (GArray) rates = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_WINDOWS; i++) {
    const double rate = window (session);
    g_array_append_val (rates, rate);
  }
  return bench_median (rates);
}

int
bench_first_save (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = bench_make_folder ();
  g_autoptr (MusterMetaGraph) meta_graph = bench_updated_model (N_VARIABLES, SMALL_SIDE);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session =
      bench_create_session (master, muster_meta_graph_graph (meta_graph));
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, &error);
  bench_check (error, "making a saver");
  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "initialising");
  (void)window (session);
  const double before = windows (session);
  g_autofree char *prefix =
      muster_saver_save (saver, session, directory, 1, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "saving");
  printf ("%g %g\n", before, windows (session));
  bench_remove_folder (directory);
  return 0;
}

/* In processes of their own: in this one something may have been saved already. */
static void
compare_around_first_save (void)
{
  g_autoptr (GArray) after = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) before = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_WINDOWS; i++) {
    g_autoptr (BenchChild) child = bench_child_new_mode (BENCH_FIRST_SAVE);
    g_autofree char *line = bench_child_line (child);
    double rate_before = 0, rate_after = 0;
    if (sscanf (line, "%lf %lf", &rate_before, &rate_after) != 2)
      bench_fail ("'bench %s' printed '%s'", BENCH_FIRST_SAVE, line);
    rate_before = 1 / rate_before;
    rate_after = 1 / rate_after;
    g_array_append_val (before, rate_before);
    g_array_append_val (after, rate_after);
  }
  bench_print (&(BenchRow){.what = "10 MB, a step after the first save",
                           .muster = bench_median (after),
                           .other = bench_median (before),
                           .name = "before it",
                           .bound_ratio = 1 / 0.97});
}

void
bench_saves (void)
{
  compare_around_first_save ();
  compare (&(Model){.size = "10 MB", .side = SMALL_SIDE, .seconds = 5, .share = 0.97});
  compare (&(Model){.size = "1 GiB", .side = 8192, .seconds = 12, .share = 0.85});
}
