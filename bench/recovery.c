// SPDX-License-Identifier: Apache-2.0
/* How soon a job goes on after one of its processes was killed and started again, and how soon a
 * worker that came before its server is ready: "muster serve", "train", "wait" and "prepare". */
#include "bench/bench.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define META     "--meta-graph=tests/fixtures/digits.meta"
#define FEED_X   "--feed=x:0=@tests/fixtures/digits_x.npy"
#define FEED_Y   "--feed=y:0=@tests/fixtures/digits_y.npy"
#define N_ROUNDS 3
/* Between two kills: so long all train. */
#define CALM_S 1.5
/* Nothing takes longer, or the bench fails. */
#define LIMIT_S 120.0
/* What is promised. */
#define STEP_BOUND_S    0.5
#define FIND_BOUND_S    0.1
#define FIND_BOUND_PART 0.02

static const double pauses_s[] = {0, 2, 8};
static const double waits_s[] = {1, 3, 6, 12};

static double
wall_s (void)
{
  return (double)g_get_real_time () / 1e6;
}

/* --- a task: "muster train", whose lines a thread reads --- */

typedef struct {
  const char *name;
  BenchChild *child; /* (owned) (nullable) */
  GThread *reader;   /* (owned) (nullable) */
  GMutex lock;
  GCond changed;
  double after_s;   /* guarded by lock: what was before isn't looked at */
  gboolean is_lost; /* guarded by lock: it has lost its session since, or never had one */
  double step_s;    /* guarded by lock: its first step after that; 0: none yet */
} Task;

static void
take_line (const char *line, gpointer data)
{
  Task *self = data;
  double at_s = bench_event_number (line, "time");
  g_mutex_lock (&self->lock);
  if (at_s >= self->after_s && g_str_has_prefix (line, "{\"event\":\"lost\""))
    self->is_lost = TRUE;
  if (at_s >= self->after_s && self->is_lost && self->step_s == 0 &&
      g_str_has_prefix (line, "{\"event\":\"step\""))
    self->step_s = at_s;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

/* From now on its first step is looked for; had: it must lose its session before. */
static void
mark (Task *self, gboolean had)
{
  g_mutex_lock (&self->lock);
  self->after_s = wall_s ();
  self->is_lost = !had;
  self->step_s = 0;
  g_mutex_unlock (&self->lock);
}

/* The instant of its first step. */
static double
await_step (Task *self)
{
  gint64 until_us = g_get_monotonic_time () + (gint64)(LIMIT_S * 1e6);
  g_mutex_lock (&self->lock);
  while (self->step_s == 0)
    if (!g_cond_wait_until (&self->changed, &self->lock, until_us))
      bench_fail ("the %s has made no step for %g s", self->name, LIMIT_S);
  double step_s = self->step_s;
  g_mutex_unlock (&self->lock);
  return step_s;
}

static void
task_stop (Task *self)
{
  if (self->child != NULL)
    g_subprocess_force_exit (self->child->process);
  g_clear_pointer (&self->reader, g_thread_join); /* the pipe's end has come */
  g_clear_pointer (&self->child, bench_child_free);
}

/* --- the job --- */

typedef struct {
  char *address; /* (owned) */
  char *folder;  /* (owned) */
  BenchChild *server;
  Task chief, worker;
} Job;

static void
start_server (Job *self)
{
  g_autofree char *listen = g_strconcat ("--listen=", self->address, NULL);
  g_autofree char *address = NULL;
  self->server = bench_serve_command_at (listen, NULL, &address);
}

static void
start_task (Job *self, Task *task)
{
  gboolean is_chief = task == &self->chief;
  g_autofree char *master = g_strconcat ("--master=grpc://", self->address, NULL);
  g_autofree char *folder = g_strconcat ("--checkpoint-dir=", self->folder, NULL);
  const char *const argv[] = {
      "cli/muster", "train",
      META,         FEED_X,
      FEED_Y,       "--steps=1000000000",
      "--json",     "--tasks=2",
      master,       is_chief ? "--task=chief:0" : "--task=worker:0",
      folder,       "--save-secs=1", /* the chief's; a worker saves nothing */
      NULL};
  mark (task, FALSE);
  task->child = bench_child_new (argv);
  task->reader = bench_child_read (task->child, take_line, task);
}

static void
job_start (Job *self)
{
  g_autoptr (GError) error = NULL;
  self->address = bench_free_address ();
  self->folder = bench_make_folder ();
  self->chief.name = "chief";
  self->worker.name = "worker";
  start_server (self);
  start_task (self, &self->chief);
  start_task (self, &self->worker);
  (void)await_step (&self->chief);
  (void)await_step (&self->worker);
}

static void
job_stop (Job *self)
{
  task_stop (&self->worker);
  task_stop (&self->chief);
  g_clear_pointer (&self->server, bench_child_free);
  bench_remove_folder (self->folder);
  g_free (self->folder);
  g_free (self->address);
}

/* --- killed and started again --- */

typedef enum { SERVER, CHIEF, WORKER, N_KILLED } Killed;

static const char *const names[N_KILLED] = {"server", "chief", "worker"};

/* From the start of what was killed to the first new step of each; NAN for a task that may have
 * kept its session. */
static void
kill_once (Job *job, Killed who, double pause_s, double *chief_s, double *worker_s)
{
  Task *task = who == CHIEF ? &job->chief : &job->worker;
  bench_sleep_s (CALM_S);
  mark (&job->chief, TRUE);
  mark (&job->worker, TRUE);
  if (who == SERVER)
    g_clear_pointer (&job->server, bench_child_free);
  else
    task_stop (task);
  bench_sleep_s (pause_s);
  double started_s = wall_s ();
  if (who == SERVER)
    start_server (job);
  else
    start_task (job, task);
  *chief_s = who == WORKER ? NAN : await_step (&job->chief) - started_s;
  *worker_s = who == CHIEF ? NAN : await_step (&job->worker) - started_s;
}

static void
print_step (Killed who, double pause_s, const char *whose, GArray *seconds)
{
  if (seconds->len == 0)
    return;
  g_autofree char *what =
      g_strdup_printf ("%s killed, back after %g s: %s's next step", names[who], pause_s, whose);
  bench_print (&(BenchRow){.what = what, .muster = bench_median (seconds), .bound = STEP_BOUND_S});
}

static void
kill_and_start (Job *job, Killed who, double pause_s)
{
  g_autoptr (GArray) chief = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) worker = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_ROUNDS; i++) {
    double chief_s, worker_s;
    kill_once (job, who, pause_s, &chief_s, &worker_s);
    if (!isnan (chief_s))
      g_array_append_val (chief, chief_s);
    if (!isnan (worker_s))
      g_array_append_val (worker, worker_s);
  }
  print_step (who, pause_s, "chief", chief);
  print_step (who, pause_s, "worker", worker);
}

/* --- a worker before its server --- */

/* Reads what it prints until a line begins so; when that came. */
static double
await_line (BenchChild *child, const char *beginning)
{
  for (;;) {
    g_autofree char *line = bench_child_line (child);
    if (g_str_has_prefix (line, beginning))
      return bench_now_s ();
  }
}

/* When the server has a session. */
static double
await_session (const char *address)
{
  double until_s = bench_now_s () + LIMIT_S;
  while (bench_now_s () < until_s) {
    if (bench_status (address).sessions > 0)
      return bench_now_s ();
    bench_sleep_s (0.001);
  }
  bench_fail ("no worker has found its server for %g s", LIMIT_S);
}

/* From the server's listening to the worker's session, and from the chief's being ready to the
 * worker's. */
static void
wait_once (double wait_s, double *found_s, double *ready_s)
{
  g_autofree char *address = bench_free_address ();
  g_autofree char *master = g_strconcat ("--master=grpc://", address, NULL);
  g_autofree char *listen = g_strconcat ("--listen=", address, NULL);
  g_autofree char *bound = NULL;
  g_autoptr (BenchChild) worker =
      bench_child_new_merged ((const char *const[]){"cli/muster", "wait", META, master, NULL});
  bench_sleep_s (wait_s);
  g_autoptr (BenchChild) server = bench_serve_command_at (listen, NULL, &bound);
  double listening_s = bench_now_s ();
  *found_s = await_session (address) - listening_s;
  g_autoptr (BenchChild) chief =
      bench_child_new ((const char *const[]){"cli/muster", "prepare", META, master, NULL});
  double prepared_s = await_line (chief, "ready:");
  double joined_s = await_line (worker, "ready after");
  *ready_s = MAX (joined_s - prepared_s, 0);
}

static void
wait_before (double wait_s)
{
  g_autoptr (GArray) found = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) ready = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = 0; i < N_ROUNDS; i++) {
    double found_s, ready_s;
    wait_once (wait_s, &found_s, &ready_s);
    g_array_append_val (found, found_s);
    g_array_append_val (ready, ready_s);
  }
  g_autofree char *finds = g_strdup_printf ("worker %g s before its server: in a session", wait_s);
  g_autofree char *joins =
      g_strdup_printf ("worker %g s before its server: after its chief", wait_s);
  bench_print (&(BenchRow){.what = finds,
                           .muster = bench_median (found),
                           .bound = MAX (FIND_BOUND_S, FIND_BOUND_PART * wait_s)});
  bench_print (&(BenchRow){.what = joins, .muster = bench_median (ready), .bound = FIND_BOUND_S});
}

void
bench_recovery (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (waits_s); i++)
    wait_before (waits_s[i]);
  Job job = {0};
  job_start (&job);
  for (int who = SERVER; who < N_KILLED; who++)
    for (gsize i = 0; i < G_N_ELEMENTS (pauses_s); i++)
      kill_and_start (&job, (Killed)who, pauses_s[i]);
  job_stop (&job);
}
