// SPDX-License-Identifier: Apache-2.0
/* How the commands grow with the model: each as its user starts it, on a server of its own. */
#include "bench/bench.h"

#include <glib/gstdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define FEW    10000
#define MANY   100000
#define GROWTH 10.0 /* MANY over FEW */
#define TIMES  3

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

/* One command to its end. */
static Cost
run (const Place *self, const char *verb, const char *option)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *model = g_build_filename (self->directory, "model.meta", NULL);
  g_autofree char *meta_graph = g_strconcat ("--meta-graph=", model, NULL);
  g_autofree char *master = g_strconcat ("--master=grpc://", self->address, NULL);
  const char *argv[] = {"cli/muster", verb,   meta_graph,      master,
                        "--json",     option, "--timeout=10m", NULL};
  GPid pid;
  struct rusage used = {0};
  int status;
  const double started = bench_now_s ();
  g_spawn_async (NULL, (char **)argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL,
                 NULL, NULL, &pid, &error);
  bench_check (error, verb);
  if (wait4 (pid, &status, 0, &used) != pid || status != 0)
    bench_fail ("'muster %s' ended with %d", verb, status);
  return (Cost){bench_now_s () - started, (double)used.ru_maxrss * 1024};
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
  costs[PREPARE] = run (&first, "prepare", "--task=chief:0");
  costs[WAIT] = run (&first, "wait", "--task=worker:0");
  costs[SAVE] = run (&first, "save", from);
  costs[SERVE].bytes = bench_resident_bytes (bench_child_pid (first.server));
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

/* Medians of TIMES rounds. */
static void
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
}

void
bench_scale (void)
{
  static const char *const names[N_COSTS] = {"muster prepare", "muster wait", "muster save",
                                             "muster prepare that restores", "muster serve"};
  Cost few[N_COSTS], many[N_COSTS];
  measure (FEW, few);
  measure (MANY, many);
  for (int i = 0; i < N_COSTS; i++) {
    g_autofree char *what = g_strdup_printf ("%s, 100,000 variables", names[i]);
    g_autofree char *memory = g_strdup_printf ("%s, memory", what);
    const BenchRow time = {.what = what,
                           .muster = many[i].seconds,
                           .other = GROWTH * few[i].seconds,
                           .name = "10 × 10,000",
                           .bound_ratio = 1};
    const BenchRow room = {.what = memory,
                           .unit = BENCH_BYTES,
                           .muster = many[i].bytes,
                           .other = GROWTH * few[i].bytes,
                           .name = "10 × 10,000"};
    if (i != SERVE)
      bench_print (&time);
    bench_print (&room);
  }
}
