// SPDX-License-Identifier: Apache-2.0
/* Elastic jobs (`muster train --task=auto`): the time without a chief when it is killed or stopped,
 * and what dealing batches costs against tasks with a fixed share each.
 *
 *   MUSTER_ELASTIC_KILLS  how many chiefs are killed (50)
 *   MUSTER_ELASTIC_STOPS  how many are stopped (20) */
#include "bench/command.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#define FEED           "--feed=x:0=@tests/fixtures/digits_x.npy"
#define N_TASKS        8
#define TAKEOVER_TASKS 3
#define SAVE_OFTEN     "--save-secs=100ms"
#define SAVE_NEVER     "--save-secs=1h"
/* Chiefs live at least so long, and at most twice that. */
#define CALM_S 0.5
/* Of a measured rate, and before it. */
#define WINDOW_S 4.0
#define WARM_S   1.5
#define N_ROUNDS 5
/* A slowed task is stopped for all but this share of the time. */
#define SLOWED_SHARE  0.1
#define SLOW_PERIOD_S 0.05

typedef struct {
  char *address, *meta, *folder; /* (owned) */
  BenchCommand *server;
  GPtrArray *tasks; /* (element-type BenchCommand) */
} Job;

/* --- the job --- */

/* lease (nullable): an option of the server. */
static void
job_init (Job *self, gint32 side, const char *lease)
{
  g_autoptr (MusterMetaGraph) model = bench_trained_model (4, side);
  self->meta = bench_model_file (muster_meta_graph_bytes (model));
  self->folder = bench_make_folder ();
  self->address = bench_free_address ();
  g_autofree char *listen = g_strconcat ("--listen=", self->address, NULL);
  const char *const argv[] = {"cli/muster", "serve", listen, "--log-level=info", lease, NULL};
  BenchChild *child = bench_child_new_merged (argv);
  g_autofree char *line = NULL;
  do {
    g_free (line);
    line = bench_child_line (child);
  } while (strstr (line, "serving grpc://") == NULL);
  self->server = bench_command_new (child);
  self->tasks = g_ptr_array_new_with_free_func (bench_command_free);
}

static void
job_clear (Job *self)
{
  g_ptr_array_unref (self->tasks);
  bench_command_free (self->server);
  bench_remove_folder (self->folder);
  (void)g_unlink (self->meta);
  g_free (self->meta);
  g_free (self->folder);
  g_free (self->address);
}

/* number: of a task of a fixed job of N_TASKS; -1: an elastic one. */
static void
add_task (Job *self, int number, const char *save)
{
  g_autofree char *master = g_strconcat ("--master=grpc://", self->address, NULL);
  g_autofree char *meta = g_strconcat ("--meta-graph=", self->meta, NULL);
  g_autofree char *folder = g_strconcat ("--checkpoint-dir=", self->folder, NULL);
  g_autofree char *task = number < 0    ? g_strdup ("--task=auto")
                          : number == 0 ? g_strdup ("--task=chief:0")
                                        : g_strdup_printf ("--task=worker:%d", number - 1);
  g_autofree char *tasks = g_strdup_printf (number < 0 ? "--max-tasks=%d" : "--tasks=%d", N_TASKS);
  const char *const argv[] = {"cli/muster", "train", FEED,   "--steps=1000000000000",
                              "--json",     meta,    master, folder,
                              task,         tasks,   save,   NULL};
  g_ptr_array_add (self->tasks, bench_command_new (bench_child_new (argv)));
}

static double
newest_step (Job *self, double *at_s)
{
  double step = 0;
  for (guint i = 0; i < self->tasks->len; i++) {
    BenchCommand *task = self->tasks->pdata[i];
    g_mutex_lock (&task->lock);
    if (task->last_step > step) {
      step = task->last_step;
      *at_s = task->last_step_s;
    }
    g_mutex_unlock (&task->lock);
  }
  return step;
}

static void
await_steps (Job *self)
{
  const double until_s = bench_now_s () + BENCH_LIMIT_S;
  for (guint i = 0; i < self->tasks->len; i++)
    while (bench_command_read (self->tasks->pdata[i],
                               &((BenchCommand *)self->tasks->pdata[i])->last_step) == 0) {
      if (bench_now_s () > until_s)
        bench_fail ("task %u has made no step for %g s", i, BENCH_LIMIT_S);
      bench_sleep_s (BENCH_LOOK_S);
    }
}

/* --- a chief that is killed, or stopped --- */

static void
add_elastic (Job *self, int n, const char *save)
{
  for (int i = 0; i < n; i++)
    add_task (self, -1, save);
  await_steps (self);
}

static BenchCommand *
find_task (Job *self, int pid)
{
  for (guint i = 0; i < self->tasks->len; i++)
    if (bench_child_pid (((BenchCommand *)self->tasks->pdata[i])->child) == pid)
      return self->tasks->pdata[i];
  bench_fail ("the chief, process %d, isn't one of the tasks", pid);
}

static void
kill_chief (Job *self, GArray *claims_s, GArray *saves_s)
{
  BenchCommand *chief = find_task (self, bench_command_chief (self->server));
  const double killed_s = bench_wall_s ();
  g_ptr_array_remove (self->tasks, chief); /* which kills it */
  const double claim_s =
      bench_command_await (self->server, &self->server->claimed_s, killed_s, "claim") - killed_s;
  BenchCommand *next = find_task (self, bench_command_chief (self->server));
  const double save_s = bench_command_await (next, &next->saved_s, killed_s, "save") - killed_s;
  g_array_append_val (claims_s, claim_s);
  g_array_append_val (saves_s, save_s);
  add_elastic (self, 1, SAVE_OFTEN);
}

/* A stopped process keeps its connections: only its lease ends. It would keep the directory's lock,
 * too: its only save, the one at its start, must be over. */
static void
stop_chief (Job *self, GArray *claims_s)
{
  BenchCommand *chief = find_task (self, bench_command_chief (self->server));
  (void)bench_command_await (chief, &chief->saved_s, 0, "save");
  const double stopped_s = bench_wall_s ();
  g_subprocess_send_signal (chief->child->process, SIGSTOP);
  const double lost_s =
      bench_command_await (self->server, &self->server->lost_s, stopped_s, "end of its lease");
  const double claim_s =
      bench_command_await (self->server, &self->server->claimed_s, stopped_s, "claim") - lost_s;
  g_array_append_val (claims_s, claim_s);
  g_ptr_array_remove (self->tasks, chief);
  add_elastic (self, 1, SAVE_NEVER);
}

static void
measure_takeover (void)
{
  const guint n_kills = bench_number_of ("MUSTER_ELASTIC_KILLS", 50);
  g_autoptr (GArray) claims_s = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) saves_s = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  Job job;
  job_init (&job, 64, NULL);
  add_elastic (&job, TAKEOVER_TASKS, SAVE_OFTEN);
  for (guint i = 0; i < n_kills; i++) {
    bench_sleep_s (g_rand_double_range (random, CALM_S, 2 * CALM_S));
    kill_chief (&job, claims_s, saves_s);
  }
  job_clear (&job);
  const double worst_claim_s = bench_most (claims_s), worst_save_s = bench_most (saves_s);
  bench_print (&(BenchRow){.what = "a chief killed: until the next one's claim",
                           .muster = bench_median (claims_s),
                           .bound = 0.2});
  bench_print (&(BenchRow){.what = "  the worst", .muster = worst_claim_s, .bound = 0.2});
  bench_print (&(BenchRow){.what = "a chief killed: until the next one's save",
                           .muster = bench_median (saves_s),
                           .bound = 0.5});
  bench_print (&(BenchRow){.what = "  the worst", .muster = worst_save_s, .bound = 0.5});
}

static void
measure_silence (void)
{
  const guint n_stops = bench_number_of ("MUSTER_ELASTIC_STOPS", 20);
  g_autoptr (GArray) claims_s = g_array_new (FALSE, FALSE, sizeof (double));
  Job job;
  job_init (&job, 64, "--chief-lease=1s");
  add_elastic (&job, TAKEOVER_TASKS, SAVE_NEVER);
  for (guint i = 0; i < n_stops; i++)
    stop_chief (&job, claims_s);
  job_clear (&job);
  bench_print (&(BenchRow){.what = "a chief stopped: from its lease's end to a claim",
                           .muster = bench_median (claims_s),
                           .bound = 0.2});
  const double worst_s = bench_most (claims_s);
  bench_print (&(BenchRow){.what = "  the worst", .muster = worst_s, .bound = 0.5});
}

/* --- steps per second --- */

typedef struct {
  int pid;
  gint is_over; /* atomic */
} Slowing;

static gpointer
slow (gpointer data)
{
  Slowing *self = data;
  while (!g_atomic_int_get (&self->is_over)) {
    kill (self->pid, SIGSTOP);
    bench_sleep_s (SLOW_PERIOD_S * (1 - SLOWED_SHARE));
    kill (self->pid, SIGCONT);
    bench_sleep_s (SLOW_PERIOD_S * SLOWED_SHARE);
  }
  return NULL;
}

typedef enum { FIXED, DEALT, SEVEN, ONE_SLOWED, N_KINDS } Kind;

/* The last task to come isn't the chief. */
static double
measure_rate (Kind kind)
{
  const int n = kind == SEVEN ? N_TASKS - 1 : N_TASKS;
  double began_s = 0, ended_s = 0;
  Job job;
  job_init (&job, 128, NULL);
  for (int i = 0; i < n; i++) {
    add_task (&job, kind == FIXED ? i : -1, SAVE_NEVER);
    if (i == 0 && kind != FIXED) /* it is the chief */
      await_steps (&job);
  }
  await_steps (&job);
  Slowing slowing = {.pid = bench_child_pid (((BenchCommand *)job.tasks->pdata[n - 1])->child)};
  GThread *thread = kind == ONE_SLOWED ? g_thread_new ("slow", slow, &slowing) : NULL;
  bench_sleep_s (WARM_S);
  const double first = newest_step (&job, &began_s);
  bench_sleep_s (WINDOW_S);
  const double last = newest_step (&job, &ended_s);
  g_atomic_int_set (&slowing.is_over, 1);
  g_clear_pointer (&thread, g_thread_join);
  job_clear (&job);
  return (ended_s - began_s) / (last - first);
}

static void
measure_rates (void)
{
  GArray *seconds[N_KINDS];
  double median[N_KINDS];
  for (int kind = 0; kind < N_KINDS; kind++)
    seconds[kind] = g_array_new (FALSE, FALSE, sizeof (double));
  for (int round = 0; round < N_ROUNDS; round++)
    for (int kind = 0; kind < N_KINDS; kind++) {
      const double each = measure_rate ((Kind)kind);
      g_array_append_val (seconds[kind], each);
    }
  for (int kind = 0; kind < N_KINDS; kind++) {
    median[kind] = bench_median (seconds[kind]);
    g_array_unref (seconds[kind]);
  }
  bench_print (&(BenchRow){.what = "a step of 8 tasks, batches dealt",
                           .muster = median[DEALT],
                           .other = median[FIXED],
                           .name = "a fixed share each",
                           .bound_ratio = 1 / 0.97});
  bench_print (&(BenchRow){.what = "a step of 8 tasks, one slowed ten times",
                           .muster = median[ONE_SLOWED],
                           .other = median[SEVEN],
                           .name = "the other seven alone",
                           .bound_ratio = 1 / 0.95});
}

void
bench_elastic (void)
{
  measure_takeover ();
  measure_silence ();
  measure_rates ();
}
