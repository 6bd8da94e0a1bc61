// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  void (*run) (void);
  gboolean only_if_named;
} benchmarks[] = {
    {"step", bench_step_remote, FALSE},
    {"clients", bench_clients, FALSE},
    {"log", bench_step_logged, FALSE},
    {"local", bench_step_local, FALSE},
    {"gateway", bench_gateway, FALSE},
    {"prepare", bench_prepare, FALSE},
    {"waiters", bench_waiters, FALSE},
    {"wait-commands", bench_wait_commands, FALSE},
    {"serve", bench_serve, FALSE},
    {"scale", bench_scale, FALSE},
    {"growth", bench_growth, FALSE},
    {"latency", bench_latency, FALSE},
    {"pollers", bench_pollers, FALSE},
    {"sessions", bench_sessions, FALSE},
    {"crowd", bench_crowd, FALSE},
    {"crowd-apart", bench_crowd_apart, TRUE},
    {"crowd-tls", bench_crowd_tls, TRUE},
    {"recovery", bench_recovery, FALSE},
    {"recovery-crowd", bench_recovery_crowd, TRUE},
    {"outage", bench_outage, TRUE},
    {"cluster", bench_cluster, TRUE},
    {"elastic", bench_elastic, TRUE},
    {"coordinator", bench_coordinator, TRUE},
    {"python", bench_python, FALSE},
    {"save", bench_save, FALSE},
    {"save-memory", bench_save_memory, FALSE},
    {"save-small", bench_save_small, FALSE},
    {"restore", bench_restore, FALSE},
    {"restore-cached", bench_restore_cached, FALSE},
    {"restore-small", bench_restore_small, FALSE},
    {"async", bench_async, FALSE},
    {"saves", bench_saves, FALSE},
    {"gathered", bench_gathered, TRUE},
    {"s3", bench_s3, FALSE},
    {"train", bench_train, FALSE},
    {"compute", bench_compute, FALSE},
    {"bulk", bench_bulk, FALSE},
    {"census", bench_census, FALSE},
    {"census-prepare", bench_census_prepare, FALSE},
};

static int
usage (void)
{
  fprintf (stderr, "usage: bench [NAME...]: which of these to run (those in brackets only by "
                   "name):");
  for (gsize i = 0; i < G_N_ELEMENTS (benchmarks); i++)
    fprintf (stderr, benchmarks[i].only_if_named ? " [%s]" : " %s", benchmarks[i].name);
  fprintf (stderr, "\n");
  return 2;
}

static gboolean
is_wanted (gsize benchmark, int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    if (strcmp (argv[i], benchmarks[benchmark].name) == 0)
      return TRUE;
  return argc == 1 && !benchmarks[benchmark].only_if_named;
}

static gboolean
is_known (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (benchmarks); i++)
    if (strcmp (benchmarks[i].name, name) == 0)
      return TRUE;
  return FALSE;
}

/* It makes OpenBLAS do without instructions that the processor has, but not TensorFlow. */
static void
forget_coretype (void)
{
  static const char name[] = "OPENBLAS_CORETYPE";
  if (g_getenv (name) != NULL)
    printf ("without %s=%s, which TensorFlow doesn't heed\n", name, g_getenv (name));
  g_unsetenv (name);
}

int
main (int argc, char **argv)
{
  if (argc == 2 && strcmp (argv[1], "--serve-echo") == 0)
    return bench_serve_echo ();
  if (argc == 2 && strcmp (argv[1], "--serve-bulk") == 0)
    return bench_serve_bulk ();
  if (argc == 2 && strcmp (argv[1], "--serve-muster") == 0)
    return bench_serve_muster ();
  if (argc == 2 && strcmp (argv[1], BENCH_CLUSTER) == 0)
    return bench_cluster_in_namespace ();
  if (argc == 2 && strcmp (argv[1], BENCH_FIRST_SAVE) == 0)
    return bench_first_save ();
  if (argc == 3 && strcmp (argv[1], BENCH_GATHERED) == 0)
    return bench_gathered_apart (argv[2]);
  if (argc >= 3 && strcmp (argv[1], BENCH_RUN_APART) == 0)
    return bench_run_apart (argv + 2);
  if (argc == 3 && strcmp (argv[1], "--wait-crowd") == 0)
    return bench_wait_crowd (argv[2]);
  for (int i = 1; i < argc; i++)
    if (!is_known (argv[i]))
      return usage ();

  g_autofree char *python = bench_tensorflow_python ();
  if (python == NULL)
    printf ("TensorFlow isn't here ($MUSTER_TENSORFLOW, or bazel/setup --tests): muster alone\n");
  forget_coretype ();
  bench_head ();
  for (gsize i = 0; i < G_N_ELEMENTS (benchmarks); i++)
    if (is_wanted (i, argc, argv))
      benchmarks[i].run ();
  return 0;
}
