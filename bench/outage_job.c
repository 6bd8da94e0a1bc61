// SPDX-License-Identifier: Apache-2.0
/* The processes of a job that is killed, and what they report. */
#include "bench/outage.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define FEED "--feed=x:0=@tests/fixtures/digits_x.npy"
/* Nothing takes longer, or the bench fails. */
#define LIMIT_S 300.0
/* A task that makes steps so long after all others are back has not lost its session. */
#define SETTLED_S 1.0
#define LOOK_S    0.005
/* Between two reports of a task's steps, at the most. */
#define REPORT_S 0.2

typedef struct {
  const char *name;
  BenchChild *child; /* (owned) (nullable) */
  GThread *reader;   /* (owned) (nullable) */
  GMutex lock;
  /* guarded by lock */
  double since_s;     /* what was before isn't looked at */
  double ready_s;     /* its first session since; 0: none yet */
  double ready_step;  /* the model's step in it */
  gboolean is_kept;   /* it took the model over as it was */
  double step_s;      /* its first step in it; 0: none yet */
  double last_step;   /* its newest step of all */
  double last_step_s; /* when that was made */
  GArray *saves_s;    /* (owned) (element-type double) what its saves took */
} Task;

struct _OutageJob {
  OutageSetting setting;
  char *address; /* (owned) */
  char *folder;  /* (owned) */
  char *fast;    /* (owned) (nullable) */
  BenchChild *server;
  Task tasks[OUTAGE_PROCESSES]; /* the server's isn't used */
};

static const char *const task_names[] = {"server", "chief:0", "worker:0", "worker:1"};

/* --- what a task reports --- */

static void
take_line (const char *line, gpointer data)
{
  Task *self = data;
  const double at_s = bench_event_number (line, "time"), step = bench_event_number (line, "step");
  g_mutex_lock (&self->lock);
  if (g_str_has_prefix (line, "{\"event\":\"ready\"") && at_s >= self->since_s) {
    if (self->ready_s == 0) {
      self->ready_step = step;
      self->is_kept = strstr (line, "\"how\":\"continued\"") != NULL;
    }
    self->ready_s = at_s;
    self->step_s = 0; /* a session that made no step doesn't count */
  } else if (g_str_has_prefix (line, "{\"event\":\"step\"")) {
    if (self->ready_s > 0 && self->step_s == 0)
      self->step_s = at_s;
    self->last_step = step;
    self->last_step_s = at_s;
  } else if (g_str_has_prefix (line, "{\"event\":\"saved\"")) {
    const double took_s = bench_event_number (line, "seconds");
    g_array_append_val (self->saves_s, took_s);
  }
  g_mutex_unlock (&self->lock);
}

static void
mark (Task *self, double since_s)
{
  g_mutex_lock (&self->lock);
  self->since_s = since_s;
  self->ready_s = self->step_s = 0;
  g_mutex_unlock (&self->lock);
}

/* --- processes --- */

static void
start_server (OutageJob *self)
{
  g_autofree char *listen = g_strconcat ("--listen=", self->address, NULL);
  g_autofree char *bound = NULL;
  if (!self->setting.is_tensorflow) {
    self->server = bench_serve_command_at (listen, NULL, &bound);
    return;
  }
  self->server = bench_tensorflow_child ("tensorflow_outage.py",
                                         (const char *const[]){"server", self->address, NULL});
  if (self->server == NULL)
    return;
  g_autofree char *line = bench_child_line (self->server);
  if (!g_str_has_prefix (line, "serving"))
    bench_fail ("TensorFlow's server printed '%s'", line);
}

static BenchChild *
start_muster (OutageJob *self, OutageProcess who)
{
  g_autofree char *master = g_strconcat ("--master=grpc://", self->address, NULL);
  g_autofree char *meta = g_strconcat ("--meta-graph=", self->setting.meta, NULL);
  g_autofree char *folder = g_strconcat ("--checkpoint-dir=", self->folder, NULL);
  g_autofree char *task = g_strconcat ("--task=", task_names[who], NULL);
  g_autofree char *save = g_strdup_printf ("--save-secs=%gms", self->setting.save_every_s * 1000);
  g_autofree char *fast = self->fast != NULL
                              ? g_strdup_printf ("--fast-dir=%s,secs=%gms", self->fast,
                                                 self->setting.fast_every_s * 1000)
                              : NULL;
  const char *const argv[] = {"cli/muster", "train",     FEED, "--steps=1000000000000",
                              "--json",     "--tasks=3", meta, master,
                              task,         folder,      save, fast,
                              NULL};
  return bench_child_new (argv);
}

static BenchChild *
start_tensorflow (OutageJob *self, OutageProcess who)
{
  g_autofree char *every = g_strdup_printf ("%g", self->setting.save_every_s);
  const char *const arguments[] = {who == OUTAGE_CHIEF ? "chief" : "worker",
                                   self->address,
                                   self->setting.meta,
                                   self->folder,
                                   every,
                                   NULL};
  return bench_tensorflow_child ("tensorflow_outage.py", arguments);
}

static void
start (OutageJob *self, OutageProcess who)
{
  Task *task = &self->tasks[who];
  if (who == OUTAGE_SERVER) {
    start_server (self);
    return;
  }
  task->child =
      self->setting.is_tensorflow ? start_tensorflow (self, who) : start_muster (self, who);
  task->reader = bench_child_read (task->child, take_line, task);
}

static void
stop (OutageJob *self, OutageProcess who)
{
  Task *task = &self->tasks[who];
  if (who == OUTAGE_SERVER) {
    g_clear_pointer (&self->server, bench_child_free);
    return;
  }
  if (task->child != NULL)
    g_subprocess_force_exit (task->child->process);
  g_clear_pointer (&task->reader, g_thread_join); /* the pipe's end has come */
  g_clear_pointer (&task->child, bench_child_free);
}

OutageJob *
outage_job_new (const OutageSetting *setting)
{
  g_autofree char *python = bench_tensorflow_python ();
  if (setting->is_tensorflow && python == NULL)
    return NULL;
  OutageJob *self = g_new0 (OutageJob, 1);
  self->setting = *setting;
  self->address = bench_free_address ();
  self->folder = bench_make_folder ();
  if (setting->fast != NULL && !setting->is_tensorflow) {
    self->fast = g_build_filename (setting->fast, "muster-bench-XXXXXX", NULL);
    if (g_mkdtemp (self->fast) == NULL)
      bench_fail ("can't make a folder in '%s': %s", setting->fast, g_strerror (errno));
  }
  for (int i = 0; i < OUTAGE_PROCESSES; i++) {
    self->tasks[i].name = task_names[i];
    self->tasks[i].saves_s = g_array_new (FALSE, FALSE, sizeof (double));
    g_mutex_init (&self->tasks[i].lock);
    start (self, (OutageProcess)i);
  }
  return self;
}

void
outage_job_free (OutageJob *self)
{
  if (self == NULL)
    return;
  for (int i = OUTAGE_PROCESSES - 1; i >= 0; i--) {
    stop (self, (OutageProcess)i);
    g_array_unref (self->tasks[i].saves_s);
    g_mutex_clear (&self->tasks[i].lock);
  }
  bench_remove_folder (self->folder);
  if (self->fast != NULL)
    bench_remove_folder (self->fast);
  g_free (self->fast);
  g_free (self->folder);
  g_free (self->address);
  g_free (self);
}

const char *
outage_job_name (OutageJob *self)
{
  return self->setting.is_tensorflow ? "TensorFlow" : "muster";
}

/* --- waiting --- */

/* When it made its first step in a session since its mark; 0: not yet. */
static double
stepped_s (Task *self, double *newest_s)
{
  g_mutex_lock (&self->lock);
  const double step_s = self->step_s;
  *newest_s = self->last_step_s;
  g_mutex_unlock (&self->lock);
  return step_s;
}

/* The tasks that must have a new session since the mark: a set of bits. TRUE when they have made a
 * step in it, and the others have too, or still make steps without one. */
static gboolean
is_settled (OutageJob *self, guint must, double *last_s)
{
  double newest_s[OUTAGE_PROCESSES] = {0}, back_s[OUTAGE_PROCESSES] = {0};
  *last_s = 0;
  for (int i = OUTAGE_FIRST_TASK; i < OUTAGE_PROCESSES; i++) {
    back_s[i] = stepped_s (&self->tasks[i], &newest_s[i]);
    if ((must & (1u << i)) && back_s[i] == 0)
      return FALSE;
    *last_s = MAX (*last_s, back_s[i]);
  }
  for (int i = OUTAGE_FIRST_TASK; i < OUTAGE_PROCESSES; i++)
    if (back_s[i] == 0 && newest_s[i] < *last_s + SETTLED_S)
      return FALSE;
  return TRUE;
}

static double
await (OutageJob *self, guint must)
{
  const double until_s = bench_now_s () + LIMIT_S;
  double last_s = 0;
  while (!is_settled (self, must, &last_s)) {
    if (bench_now_s () > until_s)
      bench_fail ("a task has made no step for %g s", LIMIT_S);
    bench_sleep_s (LOOK_S);
  }
  return last_s;
}

#define ALL_TASKS ((1u << OUTAGE_CHIEF) | (1u << OUTAGE_WORKER_0) | (1u << OUTAGE_WORKER_1))

void
outage_job_await_all (OutageJob *self)
{
  (void)await (self, ALL_TASKS);
}

double
outage_job_step (OutageJob *self)
{
  double step = 0;
  for (int i = OUTAGE_FIRST_TASK; i < OUTAGE_PROCESSES; i++) {
    g_mutex_lock (&self->tasks[i].lock);
    step = MAX (step, self->tasks[i].last_step);
    g_mutex_unlock (&self->tasks[i].lock);
  }
  return step;
}

/* --- a kill --- */

/* The step at which the model goes on: that of the chief's first session since, if it went back. */
static double
resumed_at (OutageJob *self)
{
  Task *chief = &self->tasks[OUTAGE_CHIEF];
  g_mutex_lock (&chief->lock);
  const double step = chief->ready_s > 0 && !chief->is_kept ? chief->ready_step : G_MAXDOUBLE;
  g_mutex_unlock (&chief->lock);
  return step;
}

/* The step of the model at an instant: tasks report it now and then. */
static double
step_at (OutageJob *self, double at_s, double rate)
{
  double step = 0, since_s = at_s;
  for (int i = OUTAGE_FIRST_TASK; i < OUTAGE_PROCESSES; i++) {
    g_mutex_lock (&self->tasks[i].lock);
    if (self->tasks[i].last_step >= step) {
      step = self->tasks[i].last_step;
      since_s = self->tasks[i].last_step_s;
    }
    g_mutex_unlock (&self->tasks[i].lock);
  }
  return floor (step + rate * CLAMP (at_s - since_s, 0, REPORT_S));
}

OutageCost
outage_job_kill (OutageJob *self, guint who, double rate)
{
  OutageCost cost = {0};
  const double killed_s = bench_wall_s ();
  for (int i = 0; i < OUTAGE_PROCESSES; i++) {
    mark (&self->tasks[i], killed_s);
    if (who & (1u << i))
      stop (self, (OutageProcess)i);
  }
  const double reached = step_at (self, killed_s, rate);
  for (int i = 0; i < OUTAGE_PROCESSES; i++)
    if (who & (1u << i))
      start (self, (OutageProcess)i);
  const guint must = who & (1u << OUTAGE_SERVER) ? ALL_TASKS : who;
  cost.all_back_s = MAX (await (self, must) - killed_s, 0);
  for (int i = OUTAGE_FIRST_TASK; i < OUTAGE_PROCESSES; i++) {
    double newest_s;
    cost.back_s[i] = MAX (stepped_s (&self->tasks[i], &newest_s) - killed_s, 0);
  }
  cost.steps_again = MAX (reached - resumed_at (self), 0);
  cost.work_again_s = rate > 0 ? cost.steps_again / rate : NAN;
  return cost;
}

/* --- checkpoints --- */

double
outage_job_save_s (OutageJob *self)
{
  Task *chief = &self->tasks[OUTAGE_CHIEF];
  g_mutex_lock (&chief->lock);
  g_autoptr (GArray) saves = g_array_copy (chief->saves_s);
  g_mutex_unlock (&chief->lock);
  return bench_median (saves);
}

static double
read_once (const char *folder, const char *prefix)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const double began_s = bench_now_s ();
  const char *name;
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_autofree char *data = NULL;
    if (g_str_has_prefix (name, prefix))
      (void)g_file_get_contents (path, &data, NULL, NULL);
  }
  return bench_now_s () - began_s;
}

double
outage_job_read_s (OutageJob *self)
{
  const char *folder = self->fast != NULL ? self->fast : self->folder;
  g_autofree char *state = g_build_filename (folder, "checkpoint", NULL);
  g_autofree char *text = NULL;
  if (!g_file_get_contents (state, &text, NULL, NULL))
    return 0;
  g_auto (GStrv) words = g_strsplit (text, "\"", 3);
  if (g_strv_length (words) < 2)
    return 0;
  g_autofree char *name = g_path_get_basename (words[1]);
  g_autofree char *prefix = g_strconcat (name, ".", NULL);
  return read_once (folder, prefix);
}
