// SPDX-License-Identifier: Apache-2.0
/* Saving a gibibyte while training goes on: how long the call holds its caller, and what the steps
 * beside the save take. */
#include "bench/bench.h"
#include "graph/meta_graph/meta_graph.h"

#include "engine/session/local_master.h"
#include "saver/async/async_saver.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_VARIABLES  4
#define SIDE         8192 /* 256 MiB of floats each */
#define N_QUIET      12
#define N_SAVES      5
#define LARGEST      ((gsize)SIDE * SIDE * sizeof (float))
#define N_COPIES     7
#define THEIR_FIELDS 5

/* --- measuring --- */

/* Elapsed, and of the processor: the latter says what was done, however busy the machine is. */
typedef struct {
  double elapsed, cpu;
} Took;

static double
cpu_s (void)
{
  struct timespec now;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static Took
took_since (const Took *start)
{
  return (Took){bench_now_s () - start->elapsed, cpu_s () - start->cpu};
}

/* A step of the engine runs on its caller's thread. */
static Took
step (MusterSession *session)
{
  g_autoptr (GError) error = NULL;
  const Took start = {bench_now_s (), cpu_s ()};
  muster_session_run_op (session, "train", MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "training");
  return took_since (&start);
}

/* The medians of both. */
static Took
median_took (GArray *all)
{
  g_autoptr (GArray) elapsed = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) cpu = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < all->len; i++) {
    const Took *took = &g_array_index (all, Took, i);
    g_array_append_val (elapsed, took->elapsed);
    g_array_append_val (cpu, took->cpu);
  }
  return (Took){bench_median (elapsed), bench_median (cpu)};
}

static void
keep_most (Took *most, Took took)
{
  most->elapsed = MAX (most->elapsed, took.elapsed);
  most->cpu = MAX (most->cpu, took.cpu);
}

/* Into memory that is there already. */
static Took
copy (void)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Took));
  char *from = g_malloc (LARGEST), *to = g_malloc (LARGEST);
  memset (from, 1, LARGEST);
  memset (to, 2, LARGEST);
  for (int i = 0; i < N_COPIES; i++) {
    const Took start = {bench_now_s (), cpu_s ()};
    memcpy (to, from, LARGEST);
    __asm__ volatile("" : : "r"(to) : "memory");
    const Took took = took_since (&start);
    g_array_append_val (all, took);
  }
  g_free (from);
  g_free (to);
  return median_took (all);
}

typedef struct {
  GArray *call;    /* (owned) (element-type double) of each save but the first */
  GArray *slowest; /* (owned) (element-type Took) */
  double first_call;
  Took first_slowest;
  Took quiet, quiet_slowest; /* a step without a save */
  double write;              /* until it was durable, the last */
  double peak, before;       /* bytes of memory */
} Measured;

static double
peak_bytes (void)
{
  g_autofree char *text = NULL;
  const char *line =
      g_file_get_contents ("/proc/self/status", &text, NULL, NULL) ? strstr (text, "VmHWM:") : NULL;
  return line != NULL ? g_ascii_strtod (line + strlen ("VmHWM:"), NULL) * 1024 : 0;
}

static void
forget_peak (void)
{
  FILE *file = fopen ("/proc/self/clear_refs", "w");
  if (file == NULL)
    return;
  fputs ("5", file);
  fclose (file);
}

static Took
train_until_durable (MusterSession *session, MusterSaveTicket *ticket)
{
  Took slowest = {0, 0};
  while (muster_save_ticket_state (ticket) < MUSTER_SAVE_DURABLE)
    keep_most (&slowest, step (session));
  return slowest;
}

static void
save_once (Measured *m, MusterAsyncSaver *async, MusterSession *session, const char *directory,
           int round)
{
  g_autoptr (GError) error = NULL;
  double started = bench_now_s ();
  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_save (async, directory, round, MUSTER_WAIT_FOREVER, NULL, &error);
  double call = bench_now_s () - started;
  bench_check (error, "saving");
  Took slowest = train_until_durable (session, ticket);
  m->write = bench_now_s () - started;
  muster_async_saver_sync (async, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "saving");
  if (round == 0) {
    m->first_call = call;
    m->first_slowest = slowest;
    return;
  }
  g_array_append_val (m->call, call);
  g_array_append_val (m->slowest, slowest);
}

static void
measure_quiet (Measured *m, MusterSession *session)
{
  g_autoptr (GArray) quiet = g_array_new (FALSE, FALSE, sizeof (Took));
  for (int i = -2; i < N_QUIET; i++) {
    const Took took = step (session);
    if (i < 0)
      continue;
    g_array_append_val (quiet, took);
    keep_most (&m->quiet_slowest, took);
  }
  m->quiet = median_took (quiet);
}

static void
measure (Measured *m, const char *directory)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = bench_updated_model (N_VARIABLES, SIDE);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session =
      bench_create_session (master, muster_meta_graph_graph (meta_graph));
  MusterSaverOptions options = {.max_to_keep = 1};
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, &options, &error);
  bench_check (error, "making a saver");
  g_autoptr (MusterAsyncSaver) async =
      muster_async_saver_new (saver, session, MUSTER_SAVES_BLOCK, 0, &error);
  bench_check (error, "making an async saver");
  bench_init (session);
  measure_quiet (m, session);
  m->before = bench_resident_bytes ((int)getpid ());
  muster_async_saver_prepare (async, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "preparing to save");
  forget_peak ();
  for (int round = 0; round <= N_SAVES; round++)
    save_once (m, async, session, directory, round);
  m->peak = peak_bytes ();
  muster_async_saver_shutdown (async, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "ending the saver");
}

/* What the script prints: quiet step, call, slowest step, peak over before. */
static gboolean
measure_tensorflow (const char *directory, double *theirs)
{
  const char *arguments[] = {directory, NULL};
  g_autoptr (BenchChild) child = bench_tensorflow_child ("tensorflow_async.py", arguments);
  if (child == NULL)
    return FALSE;
  g_autofree char *line = bench_child_line (child);
  g_auto (GStrv) fields = g_strsplit (line, " ", -1);
  if (g_strv_length (fields) != THEIR_FIELDS)
    bench_fail ("tensorflow_async.py printed '%s'", line);
  for (int i = 0; i < THEIR_FIELDS; i++)
    theirs[i] = g_ascii_strtod (fields[i], NULL);
  return TRUE;
}

static void
print_steps (Measured *m, Took largest, const double *theirs, const char *name)
{
  const Took slowest = median_took (m->slowest);
  const double allowed = 1.2 * (m->quiet.elapsed + largest.elapsed);
  const double allowed_cpu = 1.2 * (m->quiet.cpu + largest.cpu);
  bench_print (&(BenchRow){.what = "  a step without a save",
                           .muster = m->quiet.elapsed,
                           .other = theirs[0],
                           .name = name});
  bench_print (&(BenchRow){.what = "  the slowest of those", .muster = m->quiet_slowest.elapsed});
  bench_print (&(BenchRow){.what = "  a copy of the largest variable", .muster = largest.elapsed});
  bench_print (&(BenchRow){.what = "  the slowest step beside a save",
                           .muster = slowest.elapsed,
                           .other = theirs[2],
                           .name = name,
                           .bound = allowed});
  bench_print (&(BenchRow){.what = "  the same beside the first save",
                           .muster = m->first_slowest.elapsed,
                           .bound = allowed});
  bench_print (
      &(BenchRow){.what = "  processor time: a step without a save", .muster = m->quiet.cpu});
  bench_print (&(BenchRow){.what = "  processor time: the slowest step beside a save",
                           .muster = slowest.cpu,
                           .bound = allowed_cpu});
}

void
bench_async (void)
{
  Measured m = {.call = g_array_new (FALSE, FALSE, sizeof (double)),
                .slowest = g_array_new (FALSE, FALSE, sizeof (Took))};
  double theirs[THEIR_FIELDS] = {0};
  g_autofree char *directory = bench_make_folder ();
  const Took largest = copy ();
  measure (&m, directory);
  const char *name = measure_tensorflow (directory, theirs) ? "TensorFlow" : NULL;
  bench_remove_folder (directory);
  bench_print (&(BenchRow){.what = "async save of 1 GiB: the call",
                           .muster = bench_median (m.call),
                           .other = theirs[1],
                           .name = name,
                           .bound = 1e-3});
  bench_print (&(BenchRow){.what = "  the first call", .muster = m.first_call});
  print_steps (&m, largest, theirs, name);
  bench_print (&(BenchRow){
      .what = "  until it is durable", .muster = m.write, .other = theirs[3], .name = name});
  bench_print (&(BenchRow){.what = "  memory at its peak, over that of training",
                           .unit = BENCH_BYTES,
                           .muster = m.peak - m.before,
                           .other = theirs[4],
                           .name = name});
  g_array_unref (m.call);
  g_array_unref (m.slowest);
}
