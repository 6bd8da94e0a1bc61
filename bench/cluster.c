// SPDX-License-Identifier: Apache-2.0
/* What failures cost a job on a TensorFlow cluster of four machines: each process is killed and
 * started again at once, and each machine is cut off in silence; the time until the tasks make
 * steps again, from when the server serves again, the command is started again or the cut ends.
 * Beside it TensorFlow's MonitoredTrainingSession on servers in Python.
 *
 *   MUSTER_CLUSTER_ROUNDS             how often each happens (1: about ten minutes)
 *   MUSTER_CLUSTER_TENSORFLOW_ROUNDS  how often TensorFlow's job suffers it (the same)
 *   MUSTER_CLUSTER_CUTS               how many seconds the cuts last (13,28) */
#include "bench/cluster_job.h"
#include "bench/machines.h"

#include <stdio.h>
#include <string.h>

#define CALM_S 2.0
/* What is promised: after a kill, after a cut, and of a begun step in a cut; over TensorFlow's. */
#define KILL_BOUND_S   1.5
#define CUT_BOUND_S    2.0
#define FAILED_BOUND_S 4.0
#define KILL_RATIO     1.2
#define WAITING_RATIO  0.2
#define CUT_RATIO      0.2

typedef enum { KILL_SERVER, KILL_TRAINER, CUT } What;

typedef struct {
  What what;
  ClusterTask task;
  double cut_s;
  char *name; /* (owned) */
  GArray *chief_s[2],
      *worker_s[2]; /* (owned) (element-type double) of muster's job, and TensorFlow's */
} Happening;

typedef struct {
  GArray *happenings;     /* (owned) of Happening */
  GArray *failed_s;       /* (owned) (element-type double) */
  GArray *untouched_s[2]; /* (owned) (element-type double) */
} Figures;

static GArray *
new_numbers (void)
{
  return g_array_new (FALSE, FALSE, sizeof (double));
}

/* (transfer full) name */
static void
add (Figures *self, What what, ClusterTask task, double cut_s, char *name)
{
  const Happening one = {
      what, task, cut_s, name, {new_numbers (), new_numbers ()}, {new_numbers (), new_numbers ()}};
  g_array_append_val (self->happenings, one);
}

static void
clear_happening (gpointer data)
{
  Happening *self = data;
  g_free (self->name);
  for (int i = 0; i < 2; i++) {
    g_array_unref (self->chief_s[i]);
    g_array_unref (self->worker_s[i]);
  }
}

/* --- one after the other --- */

/* The parameter server is everybody's. */
static gboolean
touches (const Happening *self, int task)
{
  return self->task == CLUSTER_PS || (int)self->task == task;
}

static void
take (Figures *self, Happening *happening, gboolean is_tensorflow, const ClusterCost *cost)
{
  for (int i = CLUSTER_FIRST_TRAINER; i < CLUSTER_TASKS; i++) {
    GArray *to = !touches (happening, i) ? self->untouched_s[is_tensorflow]
                 : i == CLUSTER_CHIEF    ? happening->chief_s[is_tensorflow]
                                         : happening->worker_s[is_tensorflow];
    g_array_append_val (to, cost->back_s[i]);
    if (!is_tensorflow && happening->what == CUT && touches (happening, i)) {
      const double failed_s = cost->failed_s[i] > 0 ? cost->failed_s[i] : happening->cut_s;
      g_array_append_val (self->failed_s, failed_s);
    }
  }
  fprintf (stderr,
           "%s, %s: next step of the chief after %.2f s, the workers after %.2f s and %.2f s; "
           "failed after %.2f s, %.2f s, %.2f s\n",
           is_tensorflow ? "TensorFlow" : "muster", happening->name, cost->back_s[CLUSTER_CHIEF],
           cost->back_s[CLUSTER_WORKER_0], cost->back_s[CLUSTER_WORKER_1],
           cost->failed_s[CLUSTER_CHIEF], cost->failed_s[CLUSTER_WORKER_0],
           cost->failed_s[CLUSTER_WORKER_1]);
}

static ClusterCost
happen (ClusterJob *job, const Happening *self)
{
  cluster_job_settle (job, CALM_S);
  switch (self->what) {
  case KILL_SERVER:
    return cluster_job_kill_server (job, self->task);
  case KILL_TRAINER:
    return cluster_job_kill_trainer (job, self->task);
  case CUT:
  default:
    return cluster_job_cut (job, self->task, self->cut_s);
  }
}

static void
measure (Figures *self, gboolean is_tensorflow, guint n_rounds)
{
  if (n_rounds == 0)
    return;
  ClusterJob *job = cluster_job_new (is_tensorflow);
  for (guint round = 0; round < n_rounds; round++)
    for (guint i = 0; i < self->happenings->len; i++) {
      Happening *happening = &g_array_index (self->happenings, Happening, i);
      const ClusterCost cost = happen (job, happening);
      take (self, happening, is_tensorflow, &cost);
    }
  cluster_job_free (job);
}

/* --- what is printed --- */

static double
worst (GArray *sorted)
{
  return sorted->len > 0 ? g_array_index (sorted, double, sorted->len - 1) : 0;
}

/* The median, and the worst. */
static void
print (const char *name, const char *what, GArray *ours, GArray *theirs, const BenchRow *bounds)
{
  if (ours->len == 0)
    return;
  g_autofree char *median = g_strdup_printf ("%s: %s", name, what);
  BenchRow row = *bounds;
  row.what = median;
  row.muster = bench_median (ours);
  row.other = theirs != NULL ? bench_median (theirs) : 0;
  bench_print (&row);
  row.what = "  the worst";
  row.muster = worst (ours);
  row.other = theirs != NULL ? worst (theirs) : 0;
  row.bound_ratio = 0; /* of one each */
  bench_print (&row);
}

static void
print_happening (const Happening *self)
{
  const BenchRow chief = {.bound = self->what == CUT ? CUT_BOUND_S : KILL_BOUND_S,
                          .bound_ratio = self->what == CUT ? CUT_RATIO : KILL_RATIO};
  BenchRow worker = chief;
  if (self->what == KILL_SERVER && self->task == CLUSTER_PS)
    worker.bound_ratio = WAITING_RATIO; /* they wait for the chief */
  print (self->name, "chief's next step", self->chief_s[0], self->chief_s[1], &chief);
  print (self->name, "workers' next step", self->worker_s[0], self->worker_s[1], &worker);
}

static void
report (const Figures *self)
{
  for (guint i = 0; i < self->happenings->len; i++)
    print_happening (&g_array_index (self->happenings, Happening, i));
  print ("cut", "a begun step fails", self->failed_s, NULL, &(BenchRow){.bound = FAILED_BOUND_S});
  print ("other tasks", "next step", self->untouched_s[0], self->untouched_s[1],
         &(BenchRow){.bound = KILL_BOUND_S});
}

/* --- all of it --- */

static void
add_all (Figures *self)
{
  static const struct {
    ClusterTask task;
    const char *name;
  } machines[] = {{CLUSTER_PS, "ps"}, {CLUSTER_CHIEF, "chief"}, {CLUSTER_WORKER_0, "worker"}};
  const char *text = g_getenv ("MUSTER_CLUSTER_CUTS");
  g_auto (GStrv) cuts = g_strsplit (text != NULL ? text : "13,28", ",", -1);
  for (gsize i = 0; i < G_N_ELEMENTS (machines); i++)
    add (self, KILL_SERVER, machines[i].task, 0,
         g_strdup_printf ("%s's server killed", machines[i].name));
  for (gsize i = 1; i < G_N_ELEMENTS (machines); i++)
    add (self, KILL_TRAINER, machines[i].task, 0,
         g_strdup_printf ("%s's command killed", machines[i].name));
  for (char **cut = cuts; *cut != NULL && **cut != '\0'; cut++)
    for (gsize i = 0; i < G_N_ELEMENTS (machines); i++)
      add (self, CUT, machines[i].task, g_ascii_strtod (*cut, NULL),
           g_strdup_printf ("%s cut for %s s", machines[i].name, *cut));
}

int
bench_cluster_in_namespace (void)
{
  const guint n_rounds = bench_number_of ("MUSTER_CLUSTER_ROUNDS", 1);
  Figures figures = {.happenings = g_array_new (FALSE, FALSE, sizeof (Happening)),
                     .failed_s = new_numbers (),
                     .untouched_s = {new_numbers (), new_numbers ()}};
  g_array_set_clear_func (figures.happenings, clear_happening);
  add_all (&figures);
  bench_switch_new ();
  measure (&figures, FALSE, n_rounds);
  measure (&figures, TRUE, bench_number_of ("MUSTER_CLUSTER_TENSORFLOW_ROUNDS", n_rounds));
  report (&figures);
  g_array_unref (figures.happenings);
  g_array_unref (figures.failed_s);
  g_array_unref (figures.untouched_s[0]);
  g_array_unref (figures.untouched_s[1]);
  return 0;
}

void
bench_cluster (void)
{
  g_autofree char *python = bench_tensorflow_python ();
  if (python == NULL)
    printf ("cluster: skipped: it needs TensorFlow\n");
  else
    bench_run_in_namespace (BENCH_CLUSTER);
}
