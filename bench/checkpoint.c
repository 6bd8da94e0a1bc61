// SPDX-License-Identifier: Apache-2.0
/* A checkpoint saved by a Saver, beside TensorFlow's Saver and beside writing and syncing as many
 * bytes; then one restored, beside TensorFlow's and beside reading its bytes into memory of one's
 * own. All take turns, so that what else the disk does falls on all alike; saving ends with durable
 * files, and each restore finds the file in the cache, or each finds it on the disk alone. */
#include "bench/bench.h"

#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "graph/meta_graph/meta_graph.h"
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
#define BLOCK_SIZE ((gsize)1 << 20)

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

/* TensorFlow's prefix is muster's: it saves, or restores what muster saved. */
static double
ask_theirs (Setup *self, const char *verb)
{
  g_autofree char *line = g_strdup_printf ("%s %s/model.ckpt-1", verb, self->directory);
  bench_child_say (self->tensorflow, line);
  g_autofree char *answer = bench_child_line (self->tensorflow);
  return g_ascii_strtod (answer, NULL);
}

static double
save_theirs (Setup *self)
{
  return ask_theirs (self, "save");
}

static double
restore_ours (Setup *self)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = g_build_filename (self->directory, "model.ckpt-1", NULL);
  const double started = bench_now_s ();
  muster_saver_restore (self->saver, self->session, &(MusterRestoreOptions){.prefix = prefix}, NULL,
                        MUSTER_WAIT_FOREVER, NULL, &error);
  const double seconds = bench_now_s () - started;
  bench_check (error, "restoring");
  return seconds;
}

static double
restore_theirs (Setup *self)
{
  return ask_theirs (self, "restore");
}

/* The paths of the checkpoint's data files; (transfer full). */
static char **
data_files (Setup *self)
{
  g_autoptr (GStrvBuilder) paths = g_strv_builder_new ();
  g_autoptr (GDir) directory = g_dir_open (self->directory, 0, NULL);
  for (const char *name; directory != NULL && (name = g_dir_read_name (directory)) != NULL;) {
    g_autofree char *path = g_build_filename (self->directory, name, NULL);
    if (strstr (name, ".data-") != NULL)
      g_strv_builder_add (paths, path);
  }
  return g_strv_builder_end (paths);
}

/* Into memory that nobody has used before. */
static double
read_raw (Setup *self)
{
  g_auto (GStrv) paths = data_files (self);
  const double started = bench_now_s ();
  g_autofree guint8 *bytes = g_malloc (self->n_bytes + BLOCK_SIZE);
  gsize done = 0;
  for (gsize i = 0; paths[i] != NULL; i++) {
    const int fd = open (paths[i], O_RDONLY | O_CLOEXEC);
    ssize_t n;
    while ((n = read (fd, bytes + done, MIN (self->n_bytes + BLOCK_SIZE - done, BLOCK_SIZE))) > 0)
      done += (gsize)n;
    if (n < 0 || close (fd) != 0)
      bench_fail ("%s: %s", paths[i], g_strerror (errno));
  }
  if (done < self->n_bytes)
    bench_fail ("%s: %d bytes instead of %d", self->directory, (int)done, (int)self->n_bytes);
  return bench_now_s () - started;
}

static double
write_raw (Setup *self)
{
  g_autofree char *path = g_build_filename (self->directory, "raw", NULL);
  const double started = bench_now_s ();
  const int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  gsize done = 0;
  while (fd >= 0 && done < self->n_bytes) {
    const ssize_t n = write (fd, self->bytes + done, MIN (self->n_bytes - done, BLOCK_SIZE));
    if (n < 0)
      break;
    done += (gsize)n;
  }
  if (fd < 0 || done < self->n_bytes || fsync (fd) != 0 || close (fd) != 0)
    bench_fail ("%s: %s", path, g_strerror (errno));
  return bench_now_s () - started;
}

/* --- what comes after each --- */

static void
clean_and_sync (Setup *self)
{
  clean (self);
  sync (); /* what it has left behind isn't the next one's to wait for */
}

static void
keep_cached (Setup *self G_GNUC_UNUSED)
{
}

static void
drop_cached (Setup *self)
{
  g_auto (GStrv) paths = data_files (self);
  for (gsize i = 0; paths[i] != NULL; i++) {
    const int fd = open (paths[i], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || posix_fadvise (fd, 0, 0, POSIX_FADV_DONTNEED) != 0 || close (fd) != 0)
      bench_fail ("%s: it can't be dropped from the cache", paths[i]);
  }
}

typedef double (*Timed) (Setup *self);

/* Muster, what the disk does by itself, TensorFlow. */
typedef struct {
  Timed subjects[3];
  void (*after) (Setup *self);
  const char *raw; /* what the second is called */
} Kind;

/* Turn by turn; the first round warms up. */
static void
measure (Setup *setup, const Kind *kind, double *medians, gsize n)
{
  GArray *seconds[3];
  for (gsize i = 0; i < n; i++)
    seconds[i] = g_array_new (FALSE, FALSE, sizeof (double));
  for (int round = -1; round < N_ROUNDS; round++)
    for (gsize i = 0; i < n; i++) {
      const double took = kind->subjects[i](setup);
      kind->after (setup);
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
print_rows (const Case *this, const Kind *kind, const double *medians, gsize n)
{
  bench_print (&(BenchRow){.what = this->what,
                           .muster = medians[0],
                           .other = medians[1],
                           .name = kind->raw,
                           .bound_ratio = this->of_raw});
  if (n > 2)
    bench_print (&(BenchRow){.what = this->what,
                             .muster = medians[0],
                             .other = medians[2],
                             .name = "TensorFlow",
                             .bound_ratio = this->of_tensorflow});
}

static void
run_save (const Case *this)
{
  static const Kind kind = {{save_ours, write_raw, save_theirs}, clean_and_sync, "write and sync"};
  g_auto (Setup) setup = {NULL};
  double medians[3] = {0};
  setup_init (&setup, this->where, &this->model);
  const gsize n = setup.tensorflow != NULL ? 3 : 2;
  measure (&setup, &kind, medians, n);
  print_rows (this, &kind, medians, n);
}

static void
run_restore (const Case *this, const Kind *kind)
{
  g_auto (Setup) setup = {NULL};
  double medians[3] = {0};
  setup_init (&setup, this->where, &this->model);
  const gsize n = setup.tensorflow != NULL ? 3 : 2;
  save_ours (&setup);
  kind->after (&setup);
  measure (&setup, kind, medians, n);
  print_rows (this, kind, medians, n);
}

static const Kind restore_cached = {{restore_ours, read_raw, restore_theirs}, keep_cached, "read"};
static const Kind restore_from_disk = {
    {restore_ours, read_raw, restore_theirs}, drop_cached, "read"};

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

void
bench_restore (void)
{
  run_restore (&(Case){"restore 1 GiB from disk", g_get_tmp_dir (), large, 1 / 0.9, 1},
               &restore_from_disk);
}

void
bench_restore_cached (void)
{
  run_restore (&(Case){"restore 1 GiB from the cache", g_get_tmp_dir (), large, 1 / 0.9, 1},
               &restore_cached);
}

void
bench_restore_small (void)
{
  run_restore (&(Case){"restore 100,000 small variables", g_get_tmp_dir (), small, 0, 1.0 / 5},
               &restore_cached);
}
