// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/bench.h"

G_BEGIN_DECLS

/* A job of a server, a chief and two workers, whose processes are killed and started again:
 * `muster serve` and `muster train`, or TensorFlow's server and MonitoredTrainingSession. */

typedef enum {
  OUTAGE_SERVER,
  OUTAGE_CHIEF,
  OUTAGE_WORKER_0,
  OUTAGE_WORKER_1,
  OUTAGE_PROCESSES
} OutageProcess;
#define OUTAGE_FIRST_TASK OUTAGE_CHIEF

typedef struct {
  gboolean is_tensorflow;
  const char *meta;    /* the model's file */
  const char *fast;    /* (nullable) where the directory of a faster tier is made */
  double fast_every_s; /* between its saves */
  double save_every_s; /* between saves */
} OutageSetting;

typedef struct _OutageJob OutageJob;

/* Starts all four. NULL without TensorFlow. */
OutageJob *outage_job_new (const OutageSetting *setting);
void outage_job_free (OutageJob *self);
/* "muster" or "TensorFlow". */
const char *outage_job_name (OutageJob *self);

/* Waits until every task has made a step. */
void outage_job_await_all (OutageJob *self);

/* Of one kill: what it has cost. */
typedef struct {
  double back_s[OUTAGE_PROCESSES]; /* from the kill to a task's next step; 0: it went on */
  double all_back_s;               /* to the last of these */
  double steps_again;              /* by which the model went back */
  double work_again_s;             /* the same in time, at the rate before the kill */
} OutageCost;

/* Kills these (a set of bits) at once, and starts them again. rate: steps per second before. */
OutageCost outage_job_kill (OutageJob *self, guint who, double rate);

/* The newest step that a task has reported. */
double outage_job_step (OutageJob *self);
/* The median of what saves took. */
double outage_job_save_s (OutageJob *self);
/* How long it takes to read the newest checkpoint's files. */
double outage_job_read_s (OutageJob *self);

G_END_DECLS
