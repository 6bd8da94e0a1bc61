// SPDX-License-Identifier: Apache-2.0
/* Steps that compute much or move much: muster's server beside TensorFlow's, with TensorFlow's own
 * client, which alternates between the two. */
#include "bench/bench.h"

#define N_ROUNDS 15

typedef struct {
  const char *name; /* in tensorflow_compute.py */
  const char *what;
  guint n_steps; /* a round */
  double bound_ratio;
} Step;

static const Step steps[] = {
    {"product", "matrix product 1024^3", 20, 1.0},
    {"layers", "step of an MLP, Adam", 10, 0.95},
    {"embedding", "step of an embedding, Adagrad", 10, 0.6},
};

static const Step bulk[] = {
    {"feed", "feed 64 MiB and sum", 2, 0.4},
    {"fetch", "fetch 64 MiB", 2, 0.4},
    {"assign", "assign 64 MiB", 2, 0.4},
};

/* A server's client, and what its rounds took. */
typedef struct {
  BenchChild *client;
  GArray *seconds;
} Side;

static Side
side_new (const char *address)
{
  g_autofree char *target = g_strconcat ("grpc://", address, NULL);
  return (Side){
      bench_tensorflow_child ("tensorflow_compute.py", (const char *const[]){target, NULL}),
      g_array_new (FALSE, FALSE, sizeof (double))};
}

static void
side_clear (Side *self)
{
  bench_child_free (self->client);
  g_array_unref (self->seconds);
}

static void
side_step (Side *self, const char *name, guint n)
{
  g_autofree char *line = g_strdup_printf ("%s %u", name, n);
  bench_child_say (self->client, line);
  g_autofree char *said = bench_child_line (self->client);
  const double seconds = g_ascii_strtod (said, NULL);
  g_array_append_val (self->seconds, seconds);
}

static double
side_median (Side *self)
{
  g_array_remove_index (self->seconds, 0); /* the first made the model */
  const double median = bench_median (self->seconds);
  g_array_set_size (self->seconds, 0);
  return median;
}

/* Turn by turn. */
static void
run_rounds (Side *const *sides, gsize n_sides, const Step *step)
{
  for (guint round = 0; round <= N_ROUNDS; round++)
    for (gsize i = 0; i < n_sides; i++)
      side_step (sides[i], step->name, step->n_steps);
}

static void
measure_steps (Side *muster, Side *other)
{
  Side *const sides[] = {muster, other};
  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++) {
    run_rounds (sides, G_N_ELEMENTS (sides), &steps[i]);
    bench_print (&(BenchRow){.what = steps[i].what,
                             .unit = BENCH_SECONDS,
                             .muster = side_median (muster),
                             .other = side_median (other),
                             .name = "TensorFlow",
                             .bound_ratio = steps[i].bound_ratio});
  }
}

/* Much of such a step is the client's: also beside what it takes where nothing is done. */
static void
measure_bulk (Side *muster, Side *other, Side *bare)
{
  Side *const sides[] = {muster, other, bare};
  for (gsize i = 0; i < G_N_ELEMENTS (bulk); i++) {
    run_rounds (sides, G_N_ELEMENTS (sides), &bulk[i]);
    BenchRow row = {.what = bulk[i].what,
                    .unit = BENCH_SECONDS,
                    .muster = side_median (muster),
                    .other = side_median (other),
                    .name = "TensorFlow",
                    .bound_ratio = bulk[i].bound_ratio};
    bench_print (&row);
    row.other = side_median (bare);
    row.name = "a bare gRPC server";
    row.bound_ratio = 0;
    bench_print (&row);
  }
}

void
bench_compute (void)
{
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  if (tensorflow == NULL)
    return; /* its client is what runs the steps */
  g_autofree char *theirs = bench_child_line (tensorflow);
  g_autofree char *ours = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &ours);
  Side muster = side_new (ours), other = side_new (theirs);
  measure_steps (&muster, &other);
  side_clear (&muster);
  side_clear (&other);
}

void
bench_bulk (void)
{
  g_autofree char *ours = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &ours);
  g_autoptr (BenchChild) nothing = bench_child_new_mode ("--serve-bulk");
  g_autofree char *nowhere = bench_child_line (nothing);
  bench_bulk_client (ours, nowhere);
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  if (tensorflow == NULL)
    return;
  g_autofree char *theirs = bench_child_line (tensorflow);
  Side muster = side_new (ours), other = side_new (theirs), bare = side_new (nowhere);
  measure_bulk (&muster, &other, &bare);
  side_clear (&muster);
  side_clear (&other);
  side_clear (&bare);
}
