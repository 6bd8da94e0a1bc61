// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "graph/graph.h"
#include "master/master.h"

G_BEGIN_DECLS

/* What the benchmarks share. Each measures muster side by side with what it is held against, in one
 * run, and prints lines of one table; medians, since one slow round says more about the machine
 * than about muster. A number over its bound is printed as such and is no failure; only an error
 * is.
 */

/* --- numbers --- */

double bench_now_s (void);

/* The median of values, which it sorts. */
double bench_median (GArray *values);

typedef enum { BENCH_SECONDS, BENCH_BYTES } BenchUnit;

typedef struct {
  const char *what;
  BenchUnit unit;
  double muster;
  double other;       /* what it is held against; 0: nothing */
  const char *name;   /* of the other */
  double bound;       /* on muster's number; 0: none */
  double bound_ratio; /* on muster's number over the other; 0: none */
} BenchRow;

void bench_head (void);
void bench_print (const BenchRow *row);

/* Ends the run: "bench: …", exit 1. */
void bench_fail (const char *format, ...) G_GNUC_PRINTF (1, 2) G_GNUC_NORETURN;
/* Fails with error if there is one. */
void bench_check (const GError *error, const char *what);

/* --- children: servers in processes of their own, which end with this one --- */

typedef struct {
  GSubprocess *process;  /* (owned) */
  GDataInputStream *out; /* (owned) */
} BenchChild;

/* NULL-terminated argv. */
BenchChild *bench_child_new (const char *const *argv);
/* This program again, as "bench MODE". */
BenchChild *bench_child_new_mode (const char *mode);
/* The next line it prints, without its end. */
char *bench_child_line (BenchChild *self);
int bench_child_pid (BenchChild *self);
void bench_child_free (BenchChild *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchChild, bench_child_free)

/* The Python of the environment that has TensorFlow, or NULL. */
char *bench_tensorflow_python (void);
/* One of our scripts in it, or NULL where there is none. */
BenchChild *bench_tensorflow_child (const char *script, const char *const *arguments);

/* What "bench MODE" runs: serves until its input ends. */
int bench_serve_echo (void);
int bench_serve_muster (void);

/* --- clients and models --- */

typedef struct _BenchEcho BenchEcho;
BenchEcho *bench_echo_new (const char *address);
void bench_echo_call (BenchEcho *self);
void bench_echo_free (BenchEcho *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchEcho, bench_echo_free)

MusterMaster *bench_remote (const char *address);

/* x + 2, fetched as "sum:0". */
MusterGraph *bench_addition (void);
/* n variables of four floats, with "init" and a ready op, whose name goes to *ready_op. */
MusterGraph *bench_model (guint n, char **ready_op);

/* --- the benchmarks --- */

void bench_step_remote (void);
void bench_step_local (void);
void bench_prepare (void);
void bench_waiters (void);
void bench_serve (void);

G_END_DECLS
