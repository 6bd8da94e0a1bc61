// SPDX-License-Identifier: Apache-2.0
/* 1 GiB fed and fetched: from C, and from Python as NumPy arrays. */
#include "bench/bench.h"

#include "engine/session/local_master.h"

#include <stdlib.h>

#define N_ROUNDS   7
#define N_ELEMENTS (G_GINT64_CONSTANT (1) << 28)

static void
measure (const char *what, MusterMaster *master, const char *target)
{
  g_autoptr (GArray) from_c = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GArray) from_python = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (MusterGraph) graph = bench_negation ();
  g_autoptr (MusterSession) session = bench_create_session (master, graph);
  g_autoptr (MusterTensor) x = bench_ones (N_ELEMENTS);
  const char *const argv[] = {"/usr/bin/python3", "bench/python_step.py", target, NULL};
  g_autoptr (BenchChild) python = bench_child_new (argv);
  g_free (bench_child_line (python));
  for (int i = 0; i < N_ROUNDS; i++) {
    const double in_c = bench_negate (session, x);
    bench_child_say (python, "step");
    g_autofree char *line = bench_child_line (python);
    const double in_python = g_ascii_strtod (line, NULL);
    if (i == 0) /* memory is new to both */
      continue;
    g_array_append_val (from_c, in_c);
    g_array_append_val (from_python, in_python);
  }
  bench_print (&(BenchRow){.what = what,
                           .muster = bench_median (from_python),
                           .other = bench_median (from_c),
                           .name = "from C",
                           .bound_ratio = 1.2});
}

void
bench_python (void)
{
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  measure ("1 GiB fed and fetched from Python", local, "local");

  g_autofree char *address = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &address);
  g_autofree char *target = g_strconcat ("grpc://", address, NULL);
  g_autoptr (MusterMaster) remote = bench_remote (address);
  measure ("the same over gRPC", remote, target);
}
