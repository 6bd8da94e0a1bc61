// SPDX-License-Identifier: Apache-2.0
/* How the commands grow with the model: each as its user starts it, on a server of its own. */
#include "bench/bench.h"

#include <glib/gstdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define TIMES 3

/* The model of each row, ten times the one before. */
static const struct {
  guint n_variables;
  const char *name, *before; /* how many, and ten times those of the row before */
} models[] = {
    {1000, "1,000", NULL}, {10000, "10,000", "10 × 1,000"}, {100000, "100,000", "10 × 10,000"}};
enum { N_MODELS = G_N_ELEMENTS (models), LAST = N_MODELS - 1 };

typedef struct {
  double seconds, bytes; /* what it took, and what it held at most */
} Cost;

typedef struct {
  char *directory; /* (owned) with the model and its checkpoints */
  char *address;   /* (owned) */
  BenchChild *server;
} Place;

static void
place_open (Place *self, const char *directory)
{
  self->directory = g_strdup (directory);
  self->server = bench_serve_command (NULL, &self->address);
}

static void
place_clear (Place *self)
{
  g_clear_pointer (&self->server, bench_child_free);
  g_clear_pointer (&self->address, g_free);
  g_clear_pointer (&self->directory, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Place, place_clear)

/* One command to its end. A process of its own starts it: the kernel counts the memory of who
 * starts a command as the command's. */
static Cost
run (const Place *self, const char *verb, const char *option)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *model = g_build_filename (self->directory, "model.meta", NULL), *said = NULL;
  g_autofree char *meta_graph = g_strconcat ("--meta-graph=", model, NULL);
  g_autofree char *master = g_strconcat ("--master=grpc://", self->address, NULL);
  const char *argv[] = {
      "/proc/self/exe", BENCH_RUN_APART, "cli/muster",    verb, meta_graph, master,
      "--json",         option,          "--timeout=10m", NULL};
  int status;
  Cost cost;
  g_spawn_sync (NULL, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &said, NULL, &status,
                &error);
  bench_check (error, verb);
  if (status != 0 || sscanf (said, "%lf %lf", &cost.seconds, &cost.bytes) != 2)
    bench_fail ("'muster %s' ended with %d", verb, status);
  return cost;
}

int
bench_run_apart (char **argv)
{
  GPid pid;
  int status;
  struct rusage used = {0};
  const double started = bench_now_s ();
  if (!g_spawn_async (NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL,
                      NULL, NULL, &pid, NULL) ||
      wait4 (pid, &status, 0, &used) != pid || status != 0)
    return 1;
  printf ("%f %ld\n", bench_now_s () - started, used.ru_maxrss * 1024);
  return 0;
}

/* The first start, and what follows it: a worker, a save, and a chief on another server that
 * restores it. */
enum { PREPARE, WAIT, SAVE, RESTORE, SERVE, N_COSTS };

static void
go_through (const char *directory, Cost costs[N_COSTS])
{
  g_autofree char *from = g_strconcat ("--checkpoint-dir=", directory, NULL);
  g_auto (Place) first = {0}, second = {0};
  place_open (&first, directory);
  const double idle = bench_resident_bytes (bench_child_pid (first.server));
  costs[PREPARE] = run (&first, "prepare", "--task=chief:0");
  costs[WAIT] = run (&first, "wait", "--task=worker:0");
  costs[SAVE] = run (&first, "save", from);
  costs[SERVE].bytes = bench_peak_bytes (bench_child_pid (first.server)) - idle;
  place_open (&second, directory);
  costs[RESTORE] = run (&second, "prepare", from);
}

static void
clean (const char *directory)
{
  g_autoptr (GDir) dir = g_dir_open (directory, 0, NULL);
  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;) {
    g_autofree char *path = g_build_filename (directory, name, NULL);
    g_remove (path);
  }
  g_rmdir (directory);
}

/* Medians of TIMES rounds. Returns the size of the model's file. */
static double
measure (guint n_variables, Cost costs[N_COSTS])
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = bench_make_folder ();
  g_autoptr (MusterMetaGraph) model = bench_saved_model (n_variables, 4);
  g_autofree char *path = g_build_filename (directory, "model.meta", NULL);
  gsize size;
  const char *data = g_bytes_get_data (muster_meta_graph_bytes (model), &size);
  g_file_set_contents (path, data, (gssize)size, &error);
  bench_check (error, path);
  Cost rounds[TIMES][N_COSTS] = {0};
  for (int i = 0; i < TIMES; i++)
    go_through (directory, rounds[i]);
  for (int cost = 0; cost < N_COSTS; cost++) {
    g_autoptr (GArray) seconds = g_array_new (FALSE, FALSE, sizeof (double));
    g_autoptr (GArray) bytes = g_array_new (FALSE, FALSE, sizeof (double));
    for (int i = 0; i < TIMES; i++) {
      g_array_append_val (seconds, rounds[i][cost].seconds);
      g_array_append_val (bytes, rounds[i][cost].bytes);
    }
    costs[cost] = (Cost){bench_median (seconds), bench_median (bytes)};
  }
  clean (directory);
  return (double)size;
}

/* The commands' memory beyond what they take for the smallest model, against the model's file. */
static void
print_memory (const char *what, double bytes, double file_bytes, double bound)
{
  g_autofree char *memory =
      g_strdup_printf ("%s, %s variables, peak above idle", what, models[LAST].name);
  const BenchRow row = {.what = memory,
                        .unit = BENCH_BYTES,
                        .muster = bytes,
                        .other = file_bytes,
                        .name = "the graph",
                        .bound_ratio = bound};
  bench_print (&row);
}

void
bench_scale (void)
{
  static const char *const names[N_COSTS] = {"muster prepare", "muster wait", "muster save",
                                             "muster prepare that restores", "muster serve"};
  Cost least[N_COSTS], costs[N_MODELS][N_COSTS];
  double file_bytes = 0;
  measure (1, least);
  for (gsize i = 0; i < N_MODELS; i++)
    file_bytes = measure (models[i].n_variables, costs[i]);
  for (int cost = 0; cost < N_COSTS; cost++) {
    for (gsize i = 0; i < N_MODELS && cost != SERVE; i++) {
      g_autofree char *what = g_strdup_printf ("%s, %s variables", names[cost], models[i].name);
      bench_print (&(BenchRow){.what = what,
                               .muster = costs[i][cost].seconds,
                               .other = i > 0 ? 10 * costs[i - 1][cost].seconds : 0,
                               .name = models[i].before,
                               .bound_ratio = 1});
    }
    print_memory (names[cost], costs[LAST][cost].bytes - (cost == SERVE ? 0 : least[cost].bytes),
                  file_bytes, cost == SERVE ? 4 : 3);
  }
}
