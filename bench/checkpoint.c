// SPDX-License-Identifier: Apache-2.0
/* A checkpoint saved by a Saver, beside TensorFlow's Saver and beside writing and syncing as many
 * bytes. All three end with their files durable, and in turn, so that what else the disk does falls
 * on all alike. */
#include "bench/bench.h"

#include "bundle/bundle_writer.h"
#include "bundle/checkpoint_state.h"
#include "engine/local_master.h"
#include "graph/meta_graph.h"
#include "saver/saver.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_ROUNDS   7
#define GIB        ((gsize)1 << 30)
#define N_LARGE    64
#define N_SMALL    100000
#define WRITE_SIZE ((gsize)1 << 20)

typedef struct {
  guint n_variables;
  gint64 n_elements; /* of each, floats */
} Model;

/* A model in a session of ours and in one of TensorFlow's, and a directory for both. */
typedef struct {
  char *directory;             /* (owned) */
  MusterMetaGraph *meta_graph; /* (owned) */
  MusterSession *session;      /* (owned) */
  MusterSaver *saver;          /* (owned) */
  BenchChild *tensorflow;      /* (owned) (nullable) */
  guint8 *bytes;               /* (owned) (nullable) as many as the model has */
  gsize n_bytes;
} Setup;

static BenchChild *
start_tensorflow (Setup *self)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (self->directory, "model.meta", NULL);
  GBytes *bytes = muster_meta_graph_bytes (self->meta_graph);
  g_file_set_contents (path, g_bytes_get_data (bytes, NULL), (gssize)g_bytes_get_size (bytes),
                       &error);
  bench_check (error, path);
  BenchChild *child =
      bench_tensorflow_child ("tensorflow_saver.py", (const char *const[]){path, NULL});
  if (child != NULL)
    g_free (bench_child_line (child)); /* it is ready */
  g_remove (path);
  return child;
}

static void
setup_init (Setup *self, const char *where, const Model *model)
{
  static const MusterSaverOptions options = {.max_to_keep = -1, .no_meta_graph = TRUE};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  self->directory = g_build_filename (where, "muster-bench-XXXXXX", NULL);
  if (g_mkdtemp (self->directory) == NULL)
    bench_fail ("%s: %s", self->directory, g_strerror (errno));
  self->meta_graph = bench_saved_model (model->n_variables, model->n_elements);
  self->tensorflow = start_tensorflow (self);
  self->session = bench_create_session (master, muster_meta_graph_graph (self->meta_graph));
  bench_init (self->session);
  self->saver = muster_saver_new (self->meta_graph, &options, &error);
  bench_check (error, "making a saver");
  self->n_bytes = (gsize)model->n_variables * (gsize)model->n_elements * sizeof (float);
  self->bytes = g_malloc (self->n_bytes);
  for (gsize i = 0; i < self->n_bytes; i++)
    self->bytes[i] = (guint8)(i * 37 % 251);
}

/* Empties the directory. */
static void
clean (Setup *self)
{
  g_autoptr (GDir) directory = g_dir_open (self->directory, 0, NULL);
  for (const char *name; directory != NULL && (name = g_dir_read_name (directory)) != NULL;) {
    g_autofree char *path = g_build_filename (self->directory, name, NULL);
    g_remove (path);
  }
}

static void
setup_clear (Setup *self)
{
  g_clear_pointer (&self->tensorflow, bench_child_free);
  g_clear_object (&self->session);
  g_clear_object (&self->saver);
  g_clear_pointer (&self->meta_graph, muster_meta_graph_unref);
  clean (self);
  g_rmdir (self->directory);
  g_free (self->directory);
  g_free (self->bytes);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Setup, setup_clear)

/* --- what is timed: each returns its seconds --- */

static double
save_ours (Setup *self)
{
  g_autoptr (GError) error = NULL;
  const double started = bench_now_s ();
  g_autofree char *prefix = muster_saver_save (self->saver, self->session, self->directory, 1,
                                               MUSTER_WAIT_FOREVER, NULL, &error);
  const double seconds = bench_now_s () - started;
  bench_check (error, "saving");
  return seconds;
}

static double
save_theirs (Setup *self)
{
  g_autofree char *line = g_strdup_printf ("save %s/model.ckpt-1", self->directory);
  bench_child_say (self->tensorflow, line);
  g_autofree char *answer = bench_child_line (self->tensorflow);
  return g_ascii_strtod (answer, NULL);
}

static double
write_raw (Setup *self)
{
  g_autofree char *path = g_build_filename (self->directory, "raw", NULL);
  const double started = bench_now_s ();
  const int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  gsize done = 0;
  while (fd >= 0 && done < self->n_bytes) {
    const ssize_t n = write (fd, self->bytes + done, MIN (self->n_bytes - done, WRITE_SIZE));
    if (n < 0)
      break;
    done += (gsize)n;
  }
  if (fd < 0 || done < self->n_bytes || fsync (fd) != 0 || close (fd) != 0)
    bench_fail ("%s: %s", path, g_strerror (errno));
  return bench_now_s () - started;
}

typedef double (*Timed) (Setup *self);

/* Turn by turn; the first round warms up. */
static void
measure (Setup *setup, const Timed *subjects, double *medians, gsize n)
{
  GArray *seconds[3];
  for (gsize i = 0; i < n; i++)
    seconds[i] = g_array_new (FALSE, FALSE, sizeof (double));
  for (int round = -1; round < N_ROUNDS; round++)
    for (gsize i = 0; i < n; i++) {
      const double took = subjects[i](setup);
      clean (setup);
      sync (); /* what it has left behind isn't the next one's to wait for */
      if (round >= 0)
        g_array_append_val (seconds[i], took);
    }
  for (gsize i = 0; i < n; i++) {
    medians[i] = bench_median (seconds[i]);
    g_array_unref (seconds[i]);
  }
}

/* --- the benchmarks --- */

typedef struct {
  const char *what, *where;
  Model model;
  double of_raw, of_tensorflow; /* muster's bounds; 0: none */
} Case;

static void
run_save (const Case *this)
{
  static const Timed subjects[] = {save_ours, write_raw, save_theirs};
  g_auto (Setup) setup = {NULL};
  double medians[3] = {0};
  setup_init (&setup, this->where, &this->model);
  measure (&setup, subjects, medians, setup.tensorflow != NULL ? 3 : 2);
  bench_print (&(BenchRow){.what = this->what,
                           .muster = medians[0],
                           .other = medians[1],
                           .name = "write and sync",
                           .bound_ratio = this->of_raw});
  if (setup.tensorflow != NULL)
    bench_print (&(BenchRow){.what = this->what,
                             .muster = medians[0],
                             .other = medians[2],
                             .name = "TensorFlow",
                             .bound_ratio = this->of_tensorflow});
}

static const Model large = {N_LARGE, GIB / N_LARGE / sizeof (float)}, small = {N_SMALL, 4};

void
bench_save (void)
{
  run_save (&(Case){"save 1 GiB to disk", g_get_tmp_dir (), large, 1 / 0.9, 1});
}

void
bench_save_memory (void)
{
  run_save (&(Case){"save 1 GiB to memory", "/dev/shm", large, 0, 1 / 1.5});
}

void
bench_save_small (void)
{
  run_save (&(Case){"save 100,000 small variables", g_get_tmp_dir (), small, 0, 1.0 / 5});
}
