// SPDX-License-Identifier: Apache-2.0
/* The processes of a job on a cluster that is killed and cut, and what they report. */
#include "bench/cluster_job.h"

#include "bench/machines.h"

#include <glib/gstdio.h>
#include <string.h>

#define SAVE_S "1"
#define LOOK_S 0.005

typedef enum { STEP, LOST, N_KINDS } Kind;

/* What trains for one task. */
typedef struct {
  BenchChild *child; /* (owned) (nullable) */
  GThread *reader;   /* (owned) (nullable) */
  GMutex lock;
  GArray *at_s[N_KINDS]; /* guarded by lock: (owned) (element-type double) of its events */
} Trainer;

struct _ClusterJob {
  gboolean is_tensorflow;
  char *folder, *meta; /* (owned) */
  BenchMachine *machines[CLUSTER_TASKS];
  BenchChild *servers[CLUSTER_TASKS];
  Trainer trainers[CLUSTER_TASKS]; /* the parameter server's isn't used */
};

static const char *const tasks[] = {"ps:0", "chief:0", "worker:0", "worker:1"};

/* --- what a task reports --- */

/* Steps are reported when the first of a session is made, and then ten times a second. */
static void
take_line (const char *line, gpointer data)
{
  Trainer *self = data;
  const double at_s = bench_event_number (line, "time");
  g_mutex_lock (&self->lock);
  if (g_str_has_prefix (line, "{\"event\":\"step\""))
    g_array_append_val (self->at_s[STEP], at_s);
  else if (g_str_has_prefix (line, "{\"event\":\"lost\""))
    g_array_append_val (self->at_s[LOST], at_s);
  g_mutex_unlock (&self->lock);
}

/* The first of its events since then; 0: none yet. */
static double
first_since (Trainer *self, Kind kind, double since_s)
{
  double first_s = 0;
  g_mutex_lock (&self->lock);
  const GArray *all = self->at_s[kind];
  for (guint i = all->len; i > 0 && g_array_index (all, double, i - 1) >= since_s; i--)
    first_s = g_array_index (all, double, i - 1);
  g_mutex_unlock (&self->lock);
  return first_s;
}

/* --- processes --- */

/* A command on a task's machine. */
static BenchChild *
start_there (ClusterJob *self, ClusterTask task, const char *const *words)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  const char *const *enter = bench_machine_enter (self->machines[task]);
  for (gsize i = 0; enter[i] != NULL; i++)
    g_ptr_array_add (argv, (char *)enter[i]);
  for (gsize i = 0; words[i] != NULL; i++)
    g_ptr_array_add (argv, (char *)words[i]);
  g_ptr_array_add (argv, NULL);
  return bench_child_new ((const char *const *)argv->pdata);
}

static void
start_server (ClusterJob *self, ClusterTask task)
{
  g_autofree char *python = bench_tensorflow_python ();
  g_autofree char *folder = g_path_get_dirname (python);
  g_autofree char *prefix = g_path_get_dirname (folder);
  g_autofree char *master = g_strconcat ("--master=tensorflow:", prefix, NULL);
  g_autofree char *name = g_strconcat ("--task=", tasks[task], NULL);
  const char *const ours[] = {"cli/muster", "serve", master, name, "--log-level=error", NULL};
  const char *const theirs[] = {python, "bench/tensorflow_cluster.py", "server", tasks[task], NULL};
  self->servers[task] = start_there (self, task, self->is_tensorflow ? theirs : ours);
}

static void
await_server (ClusterJob *self, ClusterTask task)
{
  g_autofree char *line = bench_child_line (self->servers[task]);
  if (!g_str_has_prefix (line, "serving "))
    bench_fail ("the server of %s printed '%s'", tasks[task], line);
}

static void
start_trainer (ClusterJob *self, ClusterTask task)
{
  Trainer *trainer = &self->trainers[task];
  g_autofree char *python = bench_tensorflow_python ();
  g_autofree char *meta = g_strconcat ("--meta-graph=", self->meta, NULL);
  g_autofree char *folder = g_strconcat ("--checkpoint-dir=", self->folder, NULL);
  g_autofree char *name = g_strconcat ("--task=", tasks[task], NULL);
  const char *const ours[] = {"cli/muster",
                              "train",
                              meta,
                              name,
                              folder,
                              "--json",
                              "--no-positions",
                              "--save-secs=" SAVE_S,
                              "--steps=1000000000000",
                              NULL};
  const char *const theirs[] = {
      python, "bench/tensorflow_cluster.py", tasks[task], self->meta, self->folder, SAVE_S, NULL};
  trainer->child = start_there (self, task, self->is_tensorflow ? theirs : ours);
  trainer->reader = bench_child_read (trainer->child, take_line, trainer);
}

static void
stop_server (ClusterJob *self, ClusterTask task)
{
  g_clear_pointer (&self->servers[task], bench_child_free);
}

static void
stop_trainer (ClusterJob *self, ClusterTask task)
{
  Trainer *trainer = &self->trainers[task];
  if (trainer->child != NULL)
    g_subprocess_force_exit (trainer->child->process);
  g_clear_pointer (&trainer->reader, g_thread_join); /* the pipe's end has come */
  g_clear_pointer (&trainer->child, bench_child_free);
}

/* --- the job --- */

/* The model is TensorFlow's own. */
static void
make_model (ClusterJob *self)
{
  self->folder = bench_make_folder ();
  self->meta = g_build_filename (self->folder, "bench.meta", NULL);
  BenchChild *child = bench_tensorflow_child ("tensorflow_cluster.py",
                                              (const char *const[]){"model", self->meta, NULL});
  g_free (bench_child_line (child));
  bench_child_free (child);
}

/* The same for all of them: each is told which task it is. */
static void
set_config (void)
{
  g_autofree char *ps = bench_machine_address (1);
  g_autofree char *chief = bench_machine_address (2);
  g_autofree char *worker_0 = bench_machine_address (3);
  g_autofree char *worker_1 = bench_machine_address (4);
  g_autofree char *config = g_strdup_printf (
      "{\"cluster\": {\"ps\": [\"%s\"], \"chief\": [\"%s\"], \"worker\": [\"%s\", \"%s\"]}}", ps,
      chief, worker_0, worker_1);
  g_setenv ("TF_CONFIG", config, TRUE);
  g_setenv ("TF_CPP_MIN_LOG_LEVEL", "3", TRUE);
}

ClusterJob *
cluster_job_new (gboolean is_tensorflow)
{
  ClusterJob *self = g_new0 (ClusterJob, 1);
  self->is_tensorflow = is_tensorflow;
  make_model (self);
  set_config ();
  for (int i = 0; i < CLUSTER_TASKS; i++) {
    self->machines[i] = bench_machine_new ((guint)i + 1);
    g_mutex_init (&self->trainers[i].lock);
    for (int kind = 0; kind < N_KINDS; kind++)
      self->trainers[i].at_s[kind] = g_array_new (FALSE, FALSE, sizeof (double));
    start_server (self, (ClusterTask)i);
  }
  for (int i = 0; i < CLUSTER_TASKS; i++)
    await_server (self, (ClusterTask)i);
  for (int i = CLUSTER_FIRST_TRAINER; i < CLUSTER_TASKS; i++)
    start_trainer (self, (ClusterTask)i);
  return self;
}

void
cluster_job_free (ClusterJob *self)
{
  for (int i = 0; i < CLUSTER_TASKS; i++) {
    stop_trainer (self, (ClusterTask)i);
    stop_server (self, (ClusterTask)i);
    for (int kind = 0; kind < N_KINDS; kind++)
      g_array_unref (self->trainers[i].at_s[kind]);
    g_mutex_clear (&self->trainers[i].lock);
    bench_machine_free (self->machines[i]);
  }
  bench_remove_folder (self->folder);
  g_free (self->folder);
  g_free (self->meta);
  g_free (self);
}

/* --- waiting --- */

static gboolean
is_alive (Trainer *self)
{
  return g_subprocess_get_identifier (self->child->process) != NULL;
}

/* When a task made its next step after that. A limit is what it takes then. */
static double
await_step (ClusterJob *self, int task, double since_s)
{
  Trainer *trainer = &self->trainers[task];
  double step_s;
  while ((step_s = first_since (trainer, STEP, since_s)) == 0) {
    if (!is_alive (trainer))
      bench_fail ("the command of %s has ended", tasks[task]);
    if (bench_wall_s () > since_s + CLUSTER_LIMIT_S)
      return since_s + CLUSTER_LIMIT_S;
    bench_sleep_s (LOOK_S);
  }
  return step_s;
}

static ClusterCost
await_all (ClusterJob *self, double since_s)
{
  ClusterCost cost = {0};
  for (int i = CLUSTER_FIRST_TRAINER; i < CLUSTER_TASKS; i++)
    cost.back_s[i] = await_step (self, i, since_s) - since_s;
  return cost;
}

/* None of them has lost its session meanwhile. */
void
cluster_job_settle (ClusterJob *self, double seconds)
{
  const double until_s = bench_wall_s () + CLUSTER_LIMIT_S;
  double since_s;
  gboolean is_calm;
  do {
    since_s = bench_wall_s ();
    (void)await_all (self, since_s);
    bench_sleep_s (seconds);
    is_calm = TRUE;
    for (int i = CLUSTER_FIRST_TRAINER; i < CLUSTER_TASKS; i++)
      is_calm = is_calm && first_since (&self->trainers[i], LOST, since_s) == 0 &&
                first_since (&self->trainers[i], STEP, bench_wall_s () - seconds / 2) > 0;
    if (!is_calm && bench_wall_s () >= until_s)
      bench_fail ("a task still loses its session, or makes no steps, after %.0f s",
                  CLUSTER_LIMIT_S);
  } while (!is_calm);
}

/* --- what happens --- */

ClusterCost
cluster_job_kill_server (ClusterJob *self, ClusterTask task)
{
  stop_server (self, task);
  start_server (self, task);
  await_server (self, task);
  return await_all (self, bench_wall_s ());
}

ClusterCost
cluster_job_kill_trainer (ClusterJob *self, ClusterTask task)
{
  stop_trainer (self, task);
  start_trainer (self, task);
  return await_all (self, bench_wall_s ());
}

ClusterCost
cluster_job_cut (ClusterJob *self, ClusterTask task, double seconds)
{
  const double cut_s = bench_wall_s ();
  bench_machine_set_cut (self->machines[task], TRUE);
  bench_sleep_s (seconds);
  bench_machine_set_cut (self->machines[task], FALSE);
  ClusterCost cost = await_all (self, bench_wall_s ());
  for (int i = CLUSTER_FIRST_TRAINER; i < CLUSTER_TASKS; i++) {
    const double failed_s = first_since (&self->trainers[i], LOST, cut_s);
    cost.failed_s[i] = failed_s > 0 ? failed_s - cut_s : 0;
  }
  return cost;
}
