// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/bench.h"

G_BEGIN_DECLS

/* A process whose output is read as it comes. */
typedef struct {
  BenchChild *child; /* (owned) */
  GThread *reader;   /* (owned) */
  GMutex lock;
  /* guarded by lock */
  double last_step, last_step_s; /* its newest step, and when that was made */
  double saved_s;                /* its newest save */
  double claimed_s;              /* a server's: the newest claim, … */
  double lost_s;                 /* … and the newest end of a chief's lease */
  int chief;                     /* a server's: the process that claimed */
} BenchCommand;

/* Nothing takes longer, or the bench fails. */
#define BENCH_LIMIT_S 60.0
#define BENCH_LOOK_S  0.001

/* Takes the child. */
BenchCommand *bench_command_new (BenchChild *child);
/* Kills it. */
void bench_command_free (gpointer command);
double bench_command_read (BenchCommand *self, const double *field);
/* The process that claimed a server's model. */
int bench_command_chief (BenchCommand *server);
/* The first instant after since_s. */
double bench_command_await (BenchCommand *self, const double *field, double since_s,
                            const char *what);
double bench_most (const GArray *values);

G_END_DECLS
