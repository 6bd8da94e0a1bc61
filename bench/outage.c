// SPDX-License-Identifier: Apache-2.0
/* What a failure costs a job of a server, a chief and two workers: the time until its tasks make
 * steps again, and the steps that are trained again. Processes are killed at random moments, alone
 * and together, and started again at once; TensorFlow's MonitoredTrainingSession on its own server
 * beside it.
 *
 *   MUSTER_OUTAGE_KILLS             how many kills of each job (20)
 *   MUSTER_OUTAGE_TENSORFLOW_KILLS  how many of TensorFlow's (the same)
 *   MUSTER_OUTAGE_MB                the models' sizes (10,1024)
 *   MUSTER_OUTAGE_KIND              what is killed, from 0: server, chief, worker, … (in turns)
 *   MUSTER_OUTAGE_FAST              where muster's faster tier is (/dev/shm); none: no such tier
 *   MUSTER_OUTAGE_SEED              of the random moments (1) */
#include "bench/outage.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_VARIABLES 4 /* and a gradient */
#define SAVE_S      1.0
#define MEMORY      "/dev/shm"
/* What is promised: besides reading the checkpoint, over TensorFlow's, and at a kill a minute. */
#define STEP_BOUND_S       0.5
#define CHIEF_BOUND_RATIO  (1.0 / 5)
#define WORKER_BOUND_RATIO (1.0 / 30)
#define STEPS_BOUND_RATIO  (1.0 / 10)
#define KILL_EVERY_S       60.0

#define BIT(process) (1u << (process))

typedef struct {
  const char *name;
  guint who;
} Kill;

static const Kill kills[] = {
    {"server", BIT (OUTAGE_SERVER)},
    {"chief", BIT (OUTAGE_CHIEF)},
    {"worker", BIT (OUTAGE_WORKER_0)},
    {"server, chief", BIT (OUTAGE_SERVER) | BIT (OUTAGE_CHIEF)},
    {"chief, worker", BIT (OUTAGE_CHIEF) | BIT (OUTAGE_WORKER_1)},
    {"all",
     BIT (OUTAGE_SERVER) | BIT (OUTAGE_CHIEF) | BIT (OUTAGE_WORKER_0) | BIT (OUTAGE_WORKER_1)},
};
#define N_KINDS G_N_ELEMENTS (kills)

/* Of one job: an array of numbers for each kind of kill. */
typedef struct {
  GArray *chief_s[N_KINDS], *worker_s[N_KINDS]; /* (owned) (element-type double) */
  GArray *steps[N_KINDS], *work_s[N_KINDS];     /* (owned) (element-type double) */
  GArray *read_s;                               /* (owned) (element-type double) */
  double cost_s;                                /* of all kills together */
  double steps_made, calm_s;                    /* between the kills */
  guint n_kills;
  double save_s;
} Figures;

typedef struct {
  double mb;
  gint32 side;
  double calm_s; /* between kills at least, and at most twice that */
  double fast_s; /* between saves to the faster tier */
} Model;

static void
figures_init (Figures *self)
{
  *self = (Figures){.read_s = g_array_new (FALSE, FALSE, sizeof (double))};
  for (gsize i = 0; i < N_KINDS; i++) {
    self->chief_s[i] = g_array_new (FALSE, FALSE, sizeof (double));
    self->worker_s[i] = g_array_new (FALSE, FALSE, sizeof (double));
    self->steps[i] = g_array_new (FALSE, FALSE, sizeof (double));
    self->work_s[i] = g_array_new (FALSE, FALSE, sizeof (double));
  }
}

static void
figures_clear (Figures *self)
{
  g_array_unref (self->read_s);
  for (gsize i = 0; i < N_KINDS; i++) {
    g_array_unref (self->chief_s[i]);
    g_array_unref (self->worker_s[i]);
    g_array_unref (self->steps[i]);
    g_array_unref (self->work_s[i]);
  }
}

static void
figures_add (Figures *self, gsize kind, const OutageCost *cost)
{
  const double worker_s = MAX (cost->back_s[OUTAGE_WORKER_0], cost->back_s[OUTAGE_WORKER_1]);
  g_array_append_val (self->chief_s[kind], cost->back_s[OUTAGE_CHIEF]);
  g_array_append_val (self->worker_s[kind], worker_s);
  g_array_append_val (self->steps[kind], cost->steps_again);
  g_array_append_val (self->work_s[kind], cost->work_again_s);
  self->cost_s += cost->all_back_s + cost->work_again_s;
  self->n_kills++;
}

/* Lets all train, and kills some at a random moment: kind by kind. */
static void
kill_once (OutageJob *job, const Model *model, GRand *random, gsize kind, Figures *figures)
{
  const double first = outage_job_step (job), began_s = bench_now_s ();
  bench_sleep_s (g_rand_double_range (random, model->calm_s, 2 * model->calm_s));
  figures->steps_made += outage_job_step (job) - first;
  figures->calm_s += bench_now_s () - began_s;
  const double rate = figures->steps_made / figures->calm_s;
  const double read_s = outage_job_read_s (job);
  const OutageCost cost = outage_job_kill (job, kills[kind].who, rate);
  g_array_append_val (figures->read_s, read_s);
  figures_add (figures, kind, &cost);
  fprintf (
      stderr,
      "%s, %g MB, %s: all back after %.2f s, %.0f steps (%.2f s of work) again, %.0f steps/s\n",
      outage_job_name (job), model->mb, kills[kind].name, cost.all_back_s, cost.steps_again,
      cost.work_again_s, rate);
}

/* FALSE without TensorFlow. */
static gboolean
measure (const OutageSetting *setting, const Model *model, guint n_kills, Figures *figures)
{
  OutageJob *job = outage_job_new (setting);
  g_autoptr (GRand) random = g_rand_new_with_seed (bench_number_of ("MUSTER_OUTAGE_SEED", 1));
  if (job == NULL)
    return FALSE;
  outage_job_await_all (job);
  for (guint i = 0; i < n_kills; i++)
    kill_once (job, model, random, bench_number_of ("MUSTER_OUTAGE_KIND", i) % N_KINDS, figures);
  figures->save_s = outage_job_save_s (job);
  outage_job_free (job);
  return TRUE;
}

/* --- what is printed --- */

typedef struct {
  const Model *model;
  double save_every_s;    /* to the tier that counts */
  Figures *ours, *theirs; /* theirs (nullable) */
} Report;

/* Where neither had anything to lose, there is nothing to print. */
static void
print_median (const Report *self, gsize kind, const char *what, GArray *ours, GArray *theirs,
              const BenchRow *bounds)
{
  if (ours->len == 0)
    return;
  const double other = theirs != NULL ? bench_median (theirs) : 0;
  const double own = bench_median (ours);
  if (own == 0 && other == 0)
    return;
  g_autofree char *row =
      g_strdup_printf ("%g MB, %s killed: %s", self->model->mb, kills[kind].name, what);
  BenchRow it = *bounds;
  it.what = row;
  it.muster = own;
  it.other = other;
  it.name = other > 0 ? "TensorFlow" : NULL;
  if (other == 0)
    it.bound_ratio = 0;
  bench_print (&it);
}

static void
print_kind (const Report *self, gsize kind)
{
  Figures *ours = self->ours, *theirs = self->theirs;
  const double bound_s = STEP_BOUND_S + bench_median (ours->read_s);
  print_median (self, kind, "chief's next step", ours->chief_s[kind],
                theirs ? theirs->chief_s[kind] : NULL,
                &(BenchRow){.bound = bound_s, .bound_ratio = CHIEF_BOUND_RATIO});
  print_median (self, kind, "workers' next step", ours->worker_s[kind],
                theirs ? theirs->worker_s[kind] : NULL,
                &(BenchRow){.bound = bound_s, .bound_ratio = WORKER_BOUND_RATIO});
  print_median (self, kind, "steps trained again", ours->steps[kind],
                theirs ? theirs->steps[kind] : NULL,
                &(BenchRow){.unit = BENCH_COUNT, .bound_ratio = STEPS_BOUND_RATIO});
  print_median (self, kind, "work trained again", ours->work_s[kind],
                theirs ? theirs->work_s[kind] : NULL,
                &(BenchRow){.bound = self->save_every_s + ours->save_s});
}

/* The share of the time that a kill a minute costs. */
static double
lost_share (const Figures *self)
{
  return self->n_kills > 0 ? self->cost_s / self->n_kills / KILL_EVERY_S : 0;
}

static void
print_goodput (const Report *self)
{
  const double read_s = bench_median (self->ours->read_s);
  const Figures *ours = self->ours, *theirs = self->theirs;
  g_autofree char *lost = g_strdup_printf ("%g MB: lost at a kill a minute", self->model->mb);
  g_autofree char *read = g_strdup_printf ("%g MB: reading the checkpoint", self->model->mb);
  g_autofree char *save = g_strdup_printf ("%g MB: a save", self->model->mb);
  bench_print (&(BenchRow){.what = lost,
                           .unit = BENCH_SHARE,
                           .muster = lost_share (ours),
                           .other = theirs != NULL ? lost_share (theirs) : 0,
                           .name = theirs != NULL ? "TensorFlow" : NULL,
                           .bound = (STEP_BOUND_S + read_s + self->save_every_s + ours->save_s) /
                                    KILL_EVERY_S});
  bench_print (&(BenchRow){.what = read, .muster = read_s});
  bench_print (&(BenchRow){.what = save, .muster = ours->save_s});
}

static void
compare (Model *model)
{
  const guint n_kills = bench_number_of ("MUSTER_OUTAGE_KILLS", 20);
  const guint n_theirs = bench_number_of ("MUSTER_OUTAGE_TENSORFLOW_KILLS", n_kills);
  g_autoptr (MusterMetaGraph) meta_graph = bench_trained_model (N_VARIABLES, model->side);
  g_autofree char *meta = bench_model_file (muster_meta_graph_bytes (meta_graph));
  const char *fast = g_getenv ("MUSTER_OUTAGE_FAST");
  OutageSetting setting = {.meta = meta,
                           .save_every_s = SAVE_S,
                           .fast = fast == NULL    ? MEMORY
                                   : *fast != '\0' ? fast
                                                   : NULL,
                           .fast_every_s = model->fast_s};
  Figures ours, theirs;
  figures_init (&ours);
  figures_init (&theirs);
  (void)measure (&setting, model, n_kills, &ours);
  setting.is_tensorflow = TRUE;
  const gboolean has_theirs = n_theirs > 0 && measure (&setting, model, n_theirs, &theirs);
  const Report report = {model, setting.fast != NULL ? model->fast_s : SAVE_S, &ours,
                         has_theirs ? &theirs : NULL};
  for (gsize i = 0; i < N_KINDS; i++)
    print_kind (&report, i);
  print_goodput (&report);
  figures_clear (&ours);
  figures_clear (&theirs);
  (void)g_unlink (meta);
}

void
bench_outage (void)
{
  const char *sizes = g_getenv ("MUSTER_OUTAGE_MB");
  g_auto (GStrv) each = g_strsplit (sizes != NULL && *sizes != '\0' ? sizes : "10,1024", ",", -1);
  for (char **size = each; *size != NULL; size++) {
    Model model = {.mb = g_ascii_strtod (*size, NULL)};
    const double floats = model.mb * 1024 * 1024 / sizeof (float) / (N_VARIABLES + 1);
    model.side = (gint32)sqrt (floats);
    model.calm_s = model.mb < 100 ? 2 : 7;
    model.fast_s = model.mb < 100 ? 0.05 : 1;
    if (model.side < 1)
      bench_fail ("MUSTER_OUTAGE_MB: '%s' isn't a size", *size);
    compare (&model);
  }
}
