// SPDX-License-Identifier: Apache-2.0
/* A model on a server that is saved through the session and restored that way, beside the server's
 * own save and restore in a directory that both see: the time, the memory of either process, and
 * the steps of a training while a save in the background goes on. Each way is measured in a process
 * and with a server of its own: TensorFlow's, where it is there. MUSTER_GATHERED_MIB: its size. */
#include "bench/bench.h"

#include "master/session_private.h"
#include "saver/async/async_saver.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB         256
#define N_VARIABLES 2
#define N_TIMES     3
#define N_STEPS     12 /* without a save */

typedef struct {
  BenchChild *server;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterSession *session;
  char *directory; /* (owned) */
} Setup;

enum {
  SAVE_S,
  RESTORE_S,
  STEP_S,
  STEP_BESIDE_S,
  SLOWEST_S,
  BESIDE_S,
  OURS,
  THEIRS,
  THEIRS_BESIDE,
  N_FIGURES
};

static const struct {
  const char *what;
  BenchUnit unit;
} rows[N_FIGURES] = {
    [SAVE_S] = {"a save through the session", BENCH_SECONDS},
    [RESTORE_S] = {"  a restore", BENCH_SECONDS},
    [STEP_S] = {"  a step without a save", BENCH_SECONDS},
    [STEP_BESIDE_S] = {"  a step beside one in the background", BENCH_SECONDS},
    [SLOWEST_S] = {"  the slowest of them", BENCH_SECONDS},
    [BESIDE_S] = {"  the save in the background", BENCH_SECONDS},
    [OURS] = {"  the chief's memory at most", BENCH_BYTES},
    [THEIRS] = {"  the server's for these saves and restores", BENCH_BYTES},
    [THEIRS_BESIDE] = {"  and with those in the background", BENCH_BYTES},
};

/* --- one way --- */

static BenchChild *
start_server (char **address)
{
  BenchChild *child = bench_tensorflow_child ("tensorflow_server.py", NULL);
  if (child == NULL)
    return bench_serve_command (NULL, address);
  *address = bench_child_line (child);
  return child;
}

/* Of the variables, which are square. */
static gint32
side (void)
{
  const double bytes = bench_number_of ("MUSTER_GATHERED_MIB", MIB) * 1048576.0;
  return (gint32)sqrt (bytes / N_VARIABLES / sizeof (float));
}

/* The shape is fed, or TensorFlow would keep constants as large as the variables. */
static void
init (MusterSession *session)
{
  const gint64 two = 2;
  const gint32 sides[] = {side (), side ()};
  g_autoptr (MusterTensor) shape =
      muster_tensor_new_from_data (MUSTER_INT32, 1, &two, sides, sizeof sides, NULL);
  g_autoptr (GError) error = NULL;
  muster_session_run_op_fed (session, "init", "shape", shape, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "initialising");
}

static void
setup_init (Setup *self, gboolean is_gathered)
{
  const MusterSaverOptions options = {.gathered = is_gathered, .no_meta_graph = TRUE};
  g_autoptr (GError) error = NULL;
  g_autofree char *address = NULL;
  self->server = start_server (&address);
  self->directory = bench_make_folder ();
  self->meta_graph = bench_updated_model (N_VARIABLES, side ());
  self->saver = muster_saver_new (self->meta_graph, &options, &error);
  bench_check (error, "making a saver");
  g_autoptr (MusterMaster) master = bench_remote (address);
  self->session = bench_create_session (master, muster_meta_graph_graph (self->meta_graph));
  init (self->session);
}

static void
setup_clear (Setup *self)
{
  g_clear_object (&self->session);
  g_clear_object (&self->saver);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  g_clear_pointer (&self->server, bench_child_free);
  bench_remove_folder (self->directory);
  g_free (self->directory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Setup, setup_clear)

static double
step (Setup *self)
{
  g_autoptr (GError) error = NULL;
  const double started = bench_now_s ();
  muster_session_run_op (self->session, "train", MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "training");
  return bench_now_s () - started;
}

static double
save (Setup *self)
{
  g_autoptr (GError) error = NULL;
  const double started = bench_now_s ();
  g_autofree char *prefix = muster_saver_save (self->saver, self->session, self->directory, 1,
                                               MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "saving");
  return bench_now_s () - started;
}

static double
restore (Setup *self)
{
  const MusterRestoreOptions latest = {.directory = self->directory};
  g_autoptr (GError) error = NULL;
  const double started = bench_now_s ();
  muster_saver_restore (self->saver, self->session, &latest, NULL, MUSTER_WAIT_FOREVER, NULL,
                        &error);
  bench_check (error, "restoring");
  return bench_now_s () - started;
}

/* The median; the first one warms up. */
static double
repeat (Setup *self, double (*what) (Setup *self), int n)
{
  g_autoptr (GArray) seconds = g_array_new (FALSE, FALSE, sizeof (double));
  for (int i = -1; i < n; i++) {
    const double took = what (self);
    if (i >= 0)
      g_array_append_val (seconds, took);
  }
  return bench_median (seconds);
}

/* Steps until a save in the background is durable. */
static void
train_beside (Setup *self, MusterAsyncSaver *async, gint64 number, GArray *steps, GArray *saves)
{
  g_autoptr (GError) error = NULL;
  const double started = bench_now_s ();
  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_save (async, self->directory, number, MUSTER_WAIT_FOREVER, NULL, &error);
  bench_check (error, "saving in the background");
  while (muster_save_ticket_state (ticket) < MUSTER_SAVE_DURABLE) {
    const double took = step (self);
    g_array_append_val (steps, took);
  }
  const double took = bench_now_s () - started;
  if (muster_save_ticket_state (ticket) != MUSTER_SAVE_DURABLE)
    bench_fail ("a save in the background has failed");
  g_array_append_val (saves, took);
}

static void
measure_beside (Setup *self, double figures[N_FIGURES])
{
  g_autoptr (GArray) steps = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) saves = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterAsyncSaver) async =
      muster_async_saver_new (self->saver, self->session, MUSTER_SAVES_BLOCK, 0, &error);
  bench_check (error, "making a saver in the background");
  for (int i = 0; i < N_TIMES; i++)
    train_beside (self, async, i + 2, steps, saves);
  figures[STEP_BESIDE_S] = bench_median (steps);
  figures[SLOWEST_S] = g_array_index (steps, double, steps->len - 1); /* they are sorted */
  figures[BESIDE_S] = bench_median (saves);
}

int
bench_gathered_apart (const char *how)
{
  g_auto (Setup) setup = {0};
  double figures[N_FIGURES];
  setup_init (&setup, strcmp (how, "gathered") == 0);
  figures[SAVE_S] = repeat (&setup, save, N_TIMES);
  figures[RESTORE_S] = repeat (&setup, restore, N_TIMES);
  figures[THEIRS] = bench_peak_bytes (bench_child_pid (setup.server));
  figures[STEP_S] = repeat (&setup, step, N_STEPS);
  measure_beside (&setup, figures);
  figures[OURS] = bench_peak_bytes (getpid ());
  figures[THEIRS_BESIDE] = bench_peak_bytes (bench_child_pid (setup.server));
  for (int i = 0; i < N_FIGURES; i++)
    printf ("%.9g%s", figures[i], i + 1 < N_FIGURES ? " " : "\n");
  return 0;
}

/* --- both --- */

static void
measure (const char *how, double figures[N_FIGURES])
{
  g_autoptr (BenchChild) child = bench_child_new_mode_with (BENCH_GATHERED, how);
  g_autofree char *line = bench_child_line (child);
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  if (g_strv_length (words) != N_FIGURES)
    bench_fail ("'bench %s %s' printed '%s'", BENCH_GATHERED, how, line);
  for (int i = 0; i < N_FIGURES; i++)
    figures[i] = g_ascii_strtod (words[i], NULL);
}

void
bench_gathered (void)
{
  double gathered[N_FIGURES], sharded[N_FIGURES];
  measure ("gathered", gathered);
  measure ("sharded", sharded);
  for (int i = 0; i < N_FIGURES; i++)
    bench_print (&(BenchRow){.what = rows[i].what,
                             .unit = rows[i].unit,
                             .muster = gathered[i],
                             .other = sharded[i],
                             .name = "by the server"});
}
