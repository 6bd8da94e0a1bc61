// SPDX-License-Identifier: Apache-2.0
/* A coordinator beside the steps: the time without a chief on a TensorFlow cluster, what it costs a
 * step there, and what a hundred tasks cost it.
 *
 *   MUSTER_COORDINATOR_KILLS  how many chiefs are killed (20)
 *   MUSTER_COORDINATOR_PAIRS  how many windows with and without a coordinator are measured (5) */
#include "bench/command.h"

#include <signal.h>

#define SAVE_OFTEN "--save-secs=1s"
#define SAVE_NEVER "--save-secs=1h"
/* Chiefs live at least so long, and at most twice that. */
#define CALM_S 1.0
/* Of a measured rate, and before it. */
#define WINDOW_S 4.0
#define WARM_S   2.0

#define N_CROWD  100
#define SETTLE_S 2.0
#define REST_S   10.0

static void
print_times (const char *what, GArray *seconds)
{
  const double worst_s = bench_most (seconds);
  bench_print (&(BenchRow){.what = what, .muster = bench_median (seconds)});
  bench_print (&(BenchRow){.what = "  the worst", .muster = worst_s});
}

/* A `muster serve` that logs what happens. */
static BenchCommand *
start_coordinator (char **address)
{
  *address = bench_free_address ();
  g_autofree char *listen = g_strconcat ("--listen=", *address, NULL);
  const char *const argv[] = {"cli/muster", "serve", listen, "--log-level=info", NULL};
  BenchChild *child = bench_child_new_merged (argv);
  g_autofree char *line = NULL;
  do {
    g_free (line);
    line = bench_child_line (child);
  } while (!g_str_has_prefix (line, "serving grpc://"));
  return bench_command_new (child);
}

/* --- a job on a cluster --- */

enum { PS, CHIEF, WORKER, N_TASKS };
static const char *const tasks[] = {"ps:0", "chief:0", "worker:0"};

typedef struct {
  char *folder, *address;                        /* (owned) */
  BenchCommand *coordinator, *trainers[N_TASKS]; /* (owned) (nullable) */
  BenchChild *servers[N_TASKS];                  /* (owned) */
} Job;

static BenchChild *
start_server (const char *task)
{
  g_autofree char *python = bench_tensorflow_python ();
  g_autofree char *folder = g_path_get_dirname (python);
  g_autofree char *prefix = g_path_get_dirname (folder);
  g_autofree char *master = g_strconcat ("--master=tensorflow:", prefix, NULL);
  g_autofree char *name = g_strconcat ("--task=", task, NULL);
  const char *const argv[] = {"cli/muster", "serve", master, name, "--log-level=error", NULL};
  return bench_child_new (argv);
}

static void
job_init (Job *self)
{
  g_autofree char *ps = bench_free_address (), *chief = bench_free_address ();
  g_autofree char *worker = bench_free_address ();
  g_autofree char *config = g_strdup_printf (
      "{\"cluster\": {\"ps\": [\"%s\"], \"chief\": [\"%s\"], \"worker\": [\"%s\"]}}", ps, chief,
      worker);
  *self = (Job){.folder = bench_make_folder ()};
  g_setenv ("TF_CONFIG", config, TRUE);
  g_setenv ("TF_CPP_MIN_LOG_LEVEL", "3", TRUE);
  self->coordinator = start_coordinator (&self->address);
  for (int i = 0; i < N_TASKS; i++)
    self->servers[i] = start_server (tasks[i]);
  for (int i = 0; i < N_TASKS; i++)
    g_free (bench_child_line (self->servers[i]));
}

static void
stop_trainer (Job *self, int task)
{
  g_clear_pointer (&self->trainers[task], bench_command_free);
}

static void
job_clear (Job *self)
{
  for (int i = 0; i < N_TASKS; i++) {
    stop_trainer (self, i);
    bench_child_free (self->servers[i]);
  }
  bench_command_free (self->coordinator);
  bench_remove_folder (self->folder);
  g_unsetenv ("TF_CONFIG");
  g_free (self->folder);
  g_free (self->address);
}

/* Waits for its first step. */
static void
start_trainer (Job *self, int task, gboolean is_coordinated, const char *save)
{
  g_autofree char *folder = g_strconcat ("--checkpoint-dir=", self->folder, NULL);
  g_autofree char *name = g_strconcat ("--task=", tasks[task], NULL);
  g_autofree char *coordinator = g_strconcat ("--coordinator=grpc://", self->address, NULL);
  const char *const argv[] = {"cli/muster",
                              "train",
                              "--meta-graph=tests/fixtures/digits_ps.meta",
                              "--feed=x:0=@tests/fixtures/digits_x.npy",
                              "--feed=y:0=@tests/fixtures/digits_y.npy",
                              "--positions",
                              "--steps=1000000000000",
                              "--json",
                              name,
                              folder,
                              save,
                              is_coordinated ? coordinator : NULL,
                              NULL};
  BenchCommand *trainer = self->trainers[task] = bench_command_new (bench_child_new (argv));
  (void)bench_command_await (trainer, &trainer->last_step, 0, "step of a task that has started");
}

/* --- a chief that is killed --- */

static int
find_trainer (Job *self, int pid)
{
  for (int i = CHIEF; i < N_TASKS; i++)
    if (bench_child_pid (self->trainers[i]->child) == pid)
      return i;
  bench_fail ("the chief, process %d, isn't one of the tasks", pid);
}

static void
kill_chief (Job *self, GArray *claims_s, GArray *saves_s)
{
  const int chief = find_trainer (self, bench_command_chief (self->coordinator));
  const double killed_s = bench_wall_s ();
  stop_trainer (self, chief);
  const double claim_s =
      bench_command_await (self->coordinator, &self->coordinator->claimed_s, killed_s, "claim") -
      killed_s;
  BenchCommand *next = self->trainers[CHIEF + WORKER - chief];
  const double save_s = bench_command_await (next, &next->saved_s, killed_s, "save") - killed_s;
  g_array_append_val (claims_s, claim_s);
  g_array_append_val (saves_s, save_s);
  start_trainer (self, chief, TRUE, SAVE_OFTEN);
}

static void
measure_takeover (void)
{
  const guint n_kills = bench_number_of ("MUSTER_COORDINATOR_KILLS", 20);
  g_autoptr (GArray) claims_s = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) saves_s = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  Job job;
  job_init (&job);
  for (int i = CHIEF; i < N_TASKS; i++)
    start_trainer (&job, i, TRUE, SAVE_OFTEN);
  for (guint i = 0; i < n_kills; i++) {
    bench_sleep_s (g_rand_double_range (random, CALM_S, 2 * CALM_S));
    kill_chief (&job, claims_s, saves_s);
  }
  job_clear (&job);
  print_times ("takeover on a cluster: until the next claim", claims_s);
  print_times ("takeover on a cluster: until its first save", saves_s);
}

/* --- a step --- */

static double
read_step (BenchCommand *trainer, double *at_s)
{
  g_mutex_lock (&trainer->lock);
  const double step = trainer->last_step;
  *at_s = trainer->last_step_s;
  g_mutex_unlock (&trainer->lock);
  return step;
}

static double
measure_step (Job *job, gboolean is_coordinated)
{
  double began_s, ended_s;
  start_trainer (job, CHIEF, is_coordinated, SAVE_NEVER);
  bench_sleep_s (WARM_S);
  const double first = read_step (job->trainers[CHIEF], &began_s);
  bench_sleep_s (WINDOW_S);
  const double last = read_step (job->trainers[CHIEF], &ended_s);
  /* One that is killed again and again before it saves blames its checkpoint. */
  g_subprocess_send_signal (job->trainers[CHIEF]->child->process, SIGTERM);
  (void)g_subprocess_wait (job->trainers[CHIEF]->child->process, NULL, NULL);
  stop_trainer (job, CHIEF);
  if (last <= first)
    bench_fail ("no step in %g s", WINDOW_S);
  return (ended_s - began_s) / (last - first);
}

static void
measure_steps (void)
{
  const guint n_pairs = bench_number_of ("MUSTER_COORDINATOR_PAIRS", 5);
  g_autoptr (GArray) with = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) without = g_array_new (FALSE, FALSE, sizeof (double));
  Job job;
  job_init (&job);
  for (guint i = 0; i < 2 * n_pairs; i++) {
    const gboolean is_coordinated = i % 4 == 1 || i % 4 == 2; /* none is always the first */
    const double step_s = measure_step (&job, is_coordinated);
    g_array_append_val (is_coordinated ? with : without, step_s);
  }
  job_clear (&job);
  bench_print (&(BenchRow){.what = "a step on a cluster, with a coordinator",
                           .muster = bench_median (with),
                           .other = bench_median (without),
                           .name = "without",
                           .bound_ratio = 1.03});
}

/* --- a hundred tasks, without TensorFlow --- */

typedef struct {
  const char *master, *coordinator; /* addresses */
  MusterGraph *model;
  const char *ready_op;
  double told_s; /* when the model was ready for it */
} Waiter;

static MusterMaster *
connect_to (const char *address, const char *at)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) coordinator = bench_remote (at);
  MusterMaster *master = bench_remote (address);
  (void)muster_master_set_coordinator (master, coordinator, &error);
  bench_check (error, "naming the coordinator");
  return master;
}

static MusterSessionManager *
manager_of (const Waiter *self, const char *task)
{
  g_autoptr (GError) error = NULL;
  const MusterSessionManagerOptions options = {
      .ready_op = self->ready_op, .model = "bench", .task = task};
  MusterSessionManager *manager = muster_session_manager_new (self->model, &options, &error);
  bench_check (error, "making a manager");
  return manager;
}

static gpointer
wait_for_model (gpointer data)
{
  Waiter *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = connect_to (self->master, self->coordinator);
  g_autoptr (MusterSessionManager) manager = manager_of (self, "worker:0");
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      manager, master, MUSTER_WAIT_FOREVER, NULL, NULL, &error);
  bench_check (error, "waiting");
  self->told_s = bench_now_s ();
  return NULL;
}

static MusterMembership *
join (MusterMaster *coordinator, int slot)
{
  g_autoptr (GError) error = NULL;
  const MusterJoin request = {
      .model = "bench", .task = "worker:0", .slot = slot, .n_slots = N_CROWD + 1};
  MusterMembership *member =
      muster_master_join (coordinator, &request, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "joining");
  return member;
}

static void
await_roster (MusterMembership *member, guint n_tasks)
{
  g_autoptr (GError) error = NULL;
  for (;;) {
    g_autoptr (MusterRoster) roster = muster_membership_roster (member);
    if (roster->n_tasks >= n_tasks)
      return;
    (void)muster_membership_wait (member, roster->version, MUSTER_WAIT_FOREVER, NULL, &error);
    bench_check (error, "waiting for a roster");
  }
}

/* From one more task's joining until all have heard of it. */
static double
measure_roster (MusterMaster *const *coordinators, MusterMembership *const *members)
{
  const double began_s = bench_now_s ();
  g_autoptr (MusterMembership) last = join (coordinators[0], N_CROWD);
  for (int i = 0; i < N_CROWD; i++)
    await_roster (members[i], N_CROWD + 1);
  return bench_now_s () - began_s;
}

/* From the chief's end of preparing until all are back. */
static double
measure_telling (const Waiter *one, Waiter *waiters, GThread **threads)
{
  g_autoptr (GError) error = NULL;
  const MusterPrepareOptions options = {.init_op = "init"};
  g_autoptr (MusterMaster) master = connect_to (one->master, one->coordinator);
  g_autoptr (MusterSessionManager) manager = manager_of (one, "chief:0");
  g_autoptr (MusterSession) session =
      muster_session_manager_prepare_session (manager, master, &options, NULL, NULL, &error);
  bench_check (error, "preparing");
  const double prepared_s = bench_now_s ();
  double last_s = prepared_s;
  for (int i = 0; i < N_CROWD; i++) {
    g_thread_join (threads[i]);
    last_s = MAX (last_s, waiters[i].told_s);
  }
  return last_s - prepared_s;
}

static void
measure_crowd (void)
{
  g_autofree char *master = NULL, *coordinator = NULL, *ready_op = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &master);
  g_autoptr (BenchChild) beside = bench_serve_command (NULL, &coordinator);
  g_autoptr (MusterGraph) model = bench_model (10, &ready_op);
  const Waiter one = {master, coordinator, model, ready_op, 0};
  MusterMaster *coordinators[N_CROWD];
  MusterMembership *members[N_CROWD];
  GThread *threads[N_CROWD];
  Waiter waiters[N_CROWD];
  for (int i = 0; i < N_CROWD; i++) {
    coordinators[i] = bench_remote (coordinator);
    members[i] = join (coordinators[i], i);
    waiters[i] = one;
    threads[i] = g_thread_new ("waiter", wait_for_model, &waiters[i]);
  }
  bench_sleep_s (SETTLE_S);
  const double before_s = bench_fine_cpu_s (bench_child_pid (beside));
  bench_sleep_s (REST_S);
  const double share = (bench_fine_cpu_s (bench_child_pid (beside)) - before_s) / REST_S;
  const double roster_s = measure_roster (coordinators, members);
  const double telling_s = measure_telling (&one, waiters, threads);
  for (int i = 0; i < N_CROWD; i++) {
    g_object_unref (members[i]);
    g_object_unref (coordinators[i]);
  }
  bench_print (&(BenchRow){.what = "100 tasks at a coordinator, at rest: of one core",
                           .unit = BENCH_SHARE,
                           .muster = share,
                           .bound = 0.05});
  bench_print (&(BenchRow){.what = "100 tasks hear that one more has joined", .muster = roster_s});
  bench_print (&(BenchRow){.what = "100 waiting tasks are back when the model is prepared",
                           .muster = telling_s});
}

void
bench_coordinator (void)
{
  g_autofree char *python = bench_tensorflow_python ();
  measure_crowd ();
  if (python == NULL)
    return;
  measure_takeover ();
  measure_steps ();
}
