// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* A model that trains nothing and counts everything: a step is fed a batch of row numbers
 * ("rows:0"), adds one to each of them in "seen", and one to "w" and "global_step". So a checkpoint
 * tells by itself which rows went into it, whether it was taken in mid-step, and how often each was
 * seen. */

#define MUSTER_SEEN_ROWS  60
#define MUSTER_SEEN_BATCH 7
#define MUSTER_SEEN_SEED  5

typedef struct {
  gboolean resources; /* variables of that kind; else reference variables */
  gint64 work;        /* multiplies matrices of that size between its writes; 0: none */
  gboolean on_server; /* such, on a parameter server; muster's engine doesn't mind */
} MusterSeenModel;

/* With a train op, and not yet extended by positions. */
MusterMetaGraph *muster_seen_model_new (const MusterSeenModel *how);

/* The rows as MusterBatches deals them. (transfer full) */
MusterTensor *muster_seen_model_rows (void);

/* Compares a checkpoint with the positions in it, of tasks or, if batches are dealt, of slots:
 * NULL, or what is wrong (transfer full). *n_done (nullable) is how many batches went into it. */
char *muster_seen_model_check (const char *prefix, guint n_tasks, gint64 *n_done);

G_END_DECLS
