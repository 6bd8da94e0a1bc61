// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterScaffold is what starting a model needs (behaviours MON.1 to MON.9): each piece is what was
 * passed in, else what the meta graph's collection of its name holds, else it is built:
 *
 *   init_op                  the initializers of all global variables
 *   local_init_op            those of the local variables, and the tables' ("table_initializer")
 *   ready_for_local_init_op  the names of the global variables that have no value; built, and kept,
 *                            only where there is a local init op
 *   ready_op                 the names of all variables that have none
 *   summary_op               "summaries" merged; there may be none
 *   saver                    only by muster_scaffold_with_saver (), or in a meta graph that
 *                            muster_saver_default () made
 *
 * What is built has the same nodes and names in every process, so that graphs still compare equal
 * on the master. A graph is never changed: whoever adds nodes gets another one, so there is nothing
 * to finalize, and nothing to un-finalize at the end (MON.6, MON.9). Immutable and counted; strings
 * are borrowed from it. */

typedef struct _MusterScaffold MusterScaffold;

#define MUSTER_TYPE_SCAFFOLD (muster_scaffold_get_type ())
GType muster_scaffold_get_type (void);

/* The chief's own initialisation, after the init op. FALSE fails the preparing, whose deadline and
 * cancellable (nullable) are given for what it waits for. */
typedef gboolean (*MusterScaffoldInitFunc) (MusterScaffold *self, MusterSession *session,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            gpointer user_data, GError **error);

typedef struct {
  /* The pieces, NULL: as above. "" for summary_op: none. Copied. */
  const char *init_op;
  const char *local_init_op;
  const char *ready_op;
  const char *ready_for_local_init_op;
  const char *summary_op;
  const char *train_op;
  const char *global_step;      /* the variable, or the tensor that reads it */
  const MusterFeed *init_feeds; /* fed to the init op; names copied, tensors referenced */
  gsize n_init_feeds;
  MusterScaffoldInitFunc init_func; /* (nullable) called with the scaffold that has it */
  gpointer init_func_data;          /* lives as long as the scaffold, and those copied from it */
  /* (nullable) What isn't given here is taken from there as it was given there; an init_func is
   * called with the new scaffold. */
  MusterScaffold *copy_from;
} MusterScaffoldOptions;

/* INVALID_ARGUMENT where the meta graph contradicts itself. */
MusterScaffold *muster_scaffold_new (MusterMetaGraph *meta_graph, GError **error);

/**
 * muster_scaffold_new_with: (skip)
 *
 * INVALID_ARGUMENT also where the graph lacks what was passed in, and where a collection has more
 * than one item to choose from. options NULL: everything from the meta graph.
 */
MusterScaffold *muster_scaffold_new_with (MusterMetaGraph *meta_graph,
                                          const MusterScaffoldOptions *options, GError **error);

/* Loads a .meta file; errors name it. DATA_LOSS for a checkpoint's that isn't as it was saved
 * (checkpoint/state/checkpoint_check.h). */
MusterScaffold *muster_scaffold_load (const char *path, GError **error);

/**
 * muster_scaffold_with_saver:
 *
 * What saving and restoring needs: itself where its meta graph has a SaverDef, else another with a
 * sharded saver of all global variables, as TensorFlow's scaffold builds it (an init_func is called
 * with that one). FAILED_PRECONDITION where the collection "savers" has several.
 *
 * Returns: (transfer full)
 */
MusterScaffold *muster_scaffold_with_saver (MusterScaffold *self, GError **error);

MusterScaffold *muster_scaffold_ref (MusterScaffold *self);
void muster_scaffold_unref (MusterScaffold *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterScaffold, muster_scaffold_unref)

/**
 * muster_scaffold_meta_graph:
 *
 * Returns: (transfer none)
 */
MusterMetaGraph *muster_scaffold_meta_graph (MusterScaffold *self);

/**
 * muster_scaffold_graph:
 *
 * The graph to make sessions with: the meta graph's own, and what was built.
 *
 * Returns: (transfer none)
 */
MusterGraph *muster_scaffold_graph (MusterScaffold *self);

/**
 * muster_scaffold_init_op:
 *
 * The op that initialises the global variables.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_init_op (MusterScaffold *self);

/**
 * muster_scaffold_local_init_op:
 *
 * The op that is run after it, and by each worker.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_local_init_op (MusterScaffold *self);

/**
 * muster_scaffold_ready_op:
 *
 * The op that says what is missing; NULL: a model without variables.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_ready_op (MusterScaffold *self);

/**
 * muster_scaffold_ready_for_local_init_op:
 *
 * The gate before the local init op.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_ready_for_local_init_op (MusterScaffold *self);

/**
 * muster_scaffold_train_op:
 *
 * The op that trains one step.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_train_op (MusterScaffold *self);

/**
 * muster_scaffold_summary_op:
 *
 * A tensor: what TensorBoard is shown.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_summary_op (MusterScaffold *self);

/**
 * muster_scaffold_global_step:
 *
 * The tensor that reads the global step, "global_step:0", or NULL if the model has none.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_global_step (MusterScaffold *self);

/**
 * muster_scaffold_init_feeds: (skip)
 *
 * What was passed in for initialising; borrowed, NULL where nothing was.
 */
const MusterFeed *muster_scaffold_init_feeds (MusterScaffold *self, gsize *n);
gboolean muster_scaffold_has_init_func (MusterScaffold *self);
/**
 * muster_scaffold_call_init_func: (skip)
 *
 * Calls it; TRUE where there is none. A MusterInitFunc whose user_data is the scaffold.
 */
gboolean muster_scaffold_call_init_func (MusterSession *session, gint64 deadline_us,
                                         GCancellable *cancellable, gpointer scaffold,
                                         GError **error);

/* How many variables there are, local ones included. */
gsize muster_scaffold_n_variables (MusterScaffold *self);

G_END_DECLS
