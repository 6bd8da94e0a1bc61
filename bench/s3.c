// SPDX-License-Identifier: Apache-2.0
/* 1 GiB to an object store, and 128 MiB back, beside boto3's transfers of the same files: moto's
 * server, which is Python, serves both, by HTTP and by HTTPS. It copies the whole object for each
 * range that is read. */
#include "bench/bench.h"

#include "checkpoint/s3/s3_metrics.h"
#include "checkpoint/s3/s3_storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define N_ROUNDS  4
#define UP_SIZE   ((gsize)1 << 30)
#define DOWN_SIZE ((gsize)128 << 20)
#define CHUNK     ((gsize)1 << 20)
#define READ_SIZE ((gsize)32 << 20)
#define OBJECT    "s3://bench/muster"

typedef struct {
  double wall_s, cpu_s;
} Cost;

typedef struct {
  GArray *wall, *cpu; /* (owned) of double */
} Costs;

static void
add (Costs *self, Cost cost)
{
  g_array_append_val (self->wall, cost.wall_s);
  g_array_append_val (self->cpu, cost.cpu_s);
}

static Costs
costs_new (void)
{
  return (Costs){g_array_new (FALSE, FALSE, sizeof (double)),
                 g_array_new (FALSE, FALSE, sizeof (double))};
}

static void
costs_clear (Costs *self)
{
  g_array_unref (self->wall);
  g_array_unref (self->cpu);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Costs, costs_clear)

static char *
find_python (void)
{
  const char *home = g_getenv ("MUSTER_S3");
  g_autofree char *usual = g_build_filename (g_get_home_dir (), ".cache/muster/s3", NULL);
  g_autofree char *python =
      g_build_filename (home != NULL && *home != '\0' ? home : usual, "bin/python3", NULL);
  return g_file_test (python, G_FILE_TEST_IS_EXECUTABLE) ? g_steal_pointer (&python) : NULL;
}

static char *
make_file (const char *folder, const char *name, gsize size)
{
  g_autofree guint32 *chunk = g_malloc (CHUNK);
  char *path = g_build_filename (folder, name, NULL);
  FILE *file = fopen (path, "w");
  for (gsize at = 0; file != NULL && at < size; at += CHUNK) {
    for (gsize i = 0; i < CHUNK / sizeof *chunk; i++)
      chunk[i] = (guint32)(at + i) * 2654435761u;
    if (fwrite (chunk, CHUNK, 1, file) != 1)
      bench_fail ("writing '%s'", path);
  }
  if (file == NULL || fclose (file) != 0)
    bench_fail ("writing '%s'", path);
  return path;
}

/* How a store is reached, and what its uploads took. */
typedef struct {
  char *url;              /* (owned) */
  MusterStorage *storage; /* (owned) */
  Costs up, their_up;
} Way;

static Cost
ask (BenchChild *peer, const char *verb, const Way *way, const char *a, const char *b)
{
  g_autofree char *line = g_strdup_printf ("%s %s %s %s", verb, way->url, a, b);
  bench_child_say (peer, line);
  g_autofree char *answer = bench_child_line (peer);
  Cost cost = {0};
  if (sscanf (answer, "%lf %lf", &cost.wall_s, &cost.cpu_s) != 2)
    bench_fail ("the peer said '%s'", answer);
  return cost;
}

static void
upload (MusterStorage *storage, const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *chunk = g_malloc (CHUNK);
  MusterStorageFile *file = muster_storage_create (storage, OBJECT, &error);
  FILE *from = fopen (path, "r");
  bench_check (error, "creating an object");
  for (gsize n; (n = fread (chunk, 1, CHUNK, from)) > 0;) {
    muster_storage_append (storage, file, chunk, n, &error);
    bench_check (error, "uploading");
  }
  fclose (from);
  muster_storage_close (storage, file, &error);
  bench_check (error, "uploading");
}

static void
download (MusterStorage *storage, const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *buffer = g_malloc (READ_SIZE);
  guint64 size = 0, at = 0;
  MusterStorageInput *input = muster_storage_open (storage, OBJECT, &size, &error);
  FILE *to = fopen (path, "w");
  bench_check (error, "opening an object");
  while (at < size) {
    const gssize n = muster_storage_read_at (storage, input, at, buffer, READ_SIZE, &error);
    bench_check (error, "downloading");
    if (fwrite (buffer, 1, (gsize)n, to) != (gsize)n)
      bench_fail ("writing '%s'", path);
    at += (guint64)n;
  }
  fclose (to);
  muster_storage_close_input (storage, input);
}

static double
own_cpu_s (void)
{
  struct rusage used;
  getrusage (RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static Cost
measure (void (*run) (MusterStorage *storage, const char *path), MusterStorage *storage,
         const char *path)
{
  const double cpu_s = own_cpu_s (), began_s = bench_now_s ();
  run (storage, path);
  return (Cost){bench_now_s () - began_s, own_cpu_s () - cpu_s};
}

static void
print (const char *what, Costs *muster, Costs *other)
{
  g_autofree char *of_cpu = g_strdup_printf ("%s, processor", what);
  bench_print (&(BenchRow){.what = what,
                           .muster = bench_median (muster->wall),
                           .other = bench_median (other->wall),
                           .name = "boto3",
                           .bound_ratio = 1});
  bench_print (&(BenchRow){.what = of_cpu,
                           .muster = bench_median (muster->cpu),
                           .other = bench_median (other->cpu),
                           .name = "boto3",
                           .bound_ratio = 0.5});
}

static void
print_memory (double before)
{
  MusterS3Metrics metrics;
  muster_s3_metrics (&metrics);
  bench_print (&(BenchRow){.what = "most that uploads held",
                           .unit = BENCH_BYTES,
                           .muster = (double)metrics.buffered_max,
                           .bound = 64 << 20});
  bench_print (&(BenchRow){.what = "peak of the process's memory by an upload",
                           .unit = BENCH_BYTES,
                           .muster = bench_peak_bytes (getpid ()) - before,
                           .bound = 64 << 20});
}

static void
open_way (Way *self, BenchChild *peer)
{
  g_autoptr (GError) error = NULL;
  *self = (Way){.url = bench_child_line (peer), .up = costs_new (), .their_up = costs_new ()};
  self->storage =
      muster_s3_storage_new (&(const MusterS3Options){.endpoint_url = self->url}, &error);
  bench_check (error, "making a store");
}

static void
close_way (Way *self)
{
  g_free (self->url);
  g_object_unref (self->storage);
  costs_clear (&self->up);
  costs_clear (&self->their_up);
}

/* One after the other, in turns. */
static void
upload_both (Way *way, BenchChild *peer, const char *file, gboolean is_first)
{
  for (int i = 0; i < 2; i++)
    if ((i == 0) == is_first) {
      add (&way->up, measure (upload, way->storage, file));
      ask (peer, "remove", way, "muster", "");
    } else {
      add (&way->their_up, ask (peer, "upload", way, file, "boto3"));
      ask (peer, "remove", way, "boto3", "");
    }
}

static void
download_both (Way *way, BenchChild *peer, const char *file, const char *copy, Costs *down,
               Costs *their_down)
{
  ask (peer, "upload", way, file, "muster");
  add (down, measure (download, way->storage, copy));
  add (their_down, ask (peer, "download", way, "muster", copy));
  ask (peer, "remove", way, "muster", "");
}

static void
compare (Way ways[2], BenchChild *peer)
{
  g_autofree char *folder = bench_make_folder ();
  g_autofree char *large = make_file (folder, "large", UP_SIZE);
  g_autofree char *small = make_file (folder, "small", DOWN_SIZE);
  g_autofree char *copy = g_build_filename (folder, "copy", NULL);
  g_auto (Costs) down = costs_new (), their_down = costs_new ();
  const double before = bench_resident_bytes (getpid ());
  for (int i = 0; i < N_ROUNDS; i++) {
    for (int j = 0; j < 2; j++) {
      upload_both (&ways[j], peer, large, i % 2 == 0);
      if (i == 0 && j == 0)
        print_memory (before);
    }
    download_both (&ways[0], peer, small, copy, &down, &their_down);
  }
  print ("1 GiB to an object store, HTTPS", &ways[1].up, &ways[1].their_up);
  print ("1 GiB to an object store, HTTP", &ways[0].up, &ways[0].their_up);
  print ("128 MiB from an object store", &down, &their_down);
  bench_remove_folder (folder);
}

void
bench_s3 (void)
{
  g_autofree char *python = find_python ();
  if (python == NULL) {
    printf ("no S3 server here ($MUSTER_S3, or bazel/setup --tests)\n");
    return;
  }
  g_autoptr (BenchChild) peer =
      bench_child_new ((const char *const[]){python, "bench/s3_peer.py", NULL});
  g_autofree char *certificate = bench_child_line (peer);
  Way ways[2];
  g_setenv ("AWS_ACCESS_KEY_ID", "id", TRUE);
  g_setenv ("AWS_SECRET_ACCESS_KEY", "secret", TRUE);
  g_setenv ("AWS_CA_BUNDLE", certificate, TRUE);
  for (int i = 0; i < 2; i++)
    open_way (&ways[i], peer);
  compare (ways, peer);
  for (int i = 0; i < 2; i++)
    close_way (&ways[i]);
}
