// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/bench.h"

G_BEGIN_DECLS

/* Machines on one switch: each is a network namespace, 10.9.0.1, 10.9.0.2, …, that can be cut off
 * in silence. They need a process that is in a namespace of its own. */

typedef struct _BenchMachine BenchMachine;

/* Runs "bench MODE" in a network namespace of its own, or says why there is none. */
void bench_run_in_namespace (const char *mode);

/* The switch to which machines are connected. */
void bench_switch_new (void);
BenchMachine *bench_machine_new (guint number);
void bench_machine_free (BenchMachine *self);
/* What runs a command there, which ends with this process: words that come before its own,
 * NULL-terminated. */
const char *const *bench_machine_enter (BenchMachine *self);
/* Nothing reaches it or leaves it any more: its packets are lost, and nobody hears of that. */
void bench_machine_set_cut (BenchMachine *self, gboolean is_cut);
char *bench_machine_address (guint number);

G_END_DECLS
