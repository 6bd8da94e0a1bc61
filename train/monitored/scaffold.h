// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterScaffold is what is needed to start a model (behaviours MON.1 to MON.9). Each item is the
 * one passed in, else the one in the meta graph's collection of that name, else it is built:
 *
 *   init_op                  the initializers of all global variables
 *   local_init_op            those of the local variables, and the tables' ("table_initializer")
 *   ready_for_local_init_op  the names of uninitialised global variables; built, and kept, only if
 *                            there is a local init op
 *   ready_op                 the names of all uninitialised variables
 *   summary_op               "summaries" merged; may be missing
 *   saver                    only by muster_scaffold_with_saver (), or in a meta graph from
 *                            muster_saver_default ()
 *
 * Built nodes have the same names in every process, so that graphs still compare equal on the
 * master. A graph is never changed: adding nodes gives another graph, so there is no finalize and
 * no un-finalize (MON.6, MON.9). Immutable and reference-counted; strings are borrowed from it. */

typedef struct _MusterScaffold MusterScaffold;

#define MUSTER_TYPE_SCAFFOLD (muster_scaffold_get_type ())
GType muster_scaffold_get_type (void);

/* The chief's initialisation after the init op. FALSE fails the preparation, whose deadline and
 * cancellable (nullable) it must respect. */
typedef gboolean (*MusterScaffoldInitFunc) (MusterScaffold *self, MusterSession *session,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            gpointer user_data, GError **error);

typedef struct {
  /* The items. NULL: as above; "" for summary_op: none. Copied. */
  const char *init_op;
  const char *local_init_op;
  const char *ready_op;
  const char *ready_for_local_init_op;
  const char *summary_op;
  const char *train_op;
  const char *global_step;      /* the variable, or the tensor that reads it */
  const MusterFeed *init_feeds; /* fed to the init op; names copied, tensors referenced */
  gsize n_init_feeds;
  MusterScaffoldInitFunc init_func; /* (nullable) called with the scaffold that it belongs to */
  gpointer init_func_data;          /* must live as long as the scaffold and those copied from it */
  /* (nullable) Items that aren't set here are those set there; an init_func is called with the new
   * scaffold. */
  MusterScaffold *copy_from;
} MusterScaffoldOptions;

/* INVALID_ARGUMENT if the meta graph contradicts itself. */
MusterScaffold *muster_scaffold_new (MusterMetaGraph *meta_graph, GError **error);

/**
 * muster_scaffold_new_with: (skip)
 *
 * INVALID_ARGUMENT also if the graph lacks an item that was passed in, or a collection is
 * ambiguous. options NULL: everything from the meta graph.
 */
MusterScaffold *muster_scaffold_new_with (MusterMetaGraph *meta_graph,
                                          const MusterScaffoldOptions *options, GError **error);

/* Loads a .meta file. Errors name it. DATA_LOSS if a checkpoint's meta graph was changed after the
 * save (checkpoint/state/checkpoint_check.h). */
MusterScaffold *muster_scaffold_load (const char *path, GError **error);

/**
 * muster_scaffold_with_saver:
 *
 * A scaffold that can save and restore: itself if its meta graph has a SaverDef, else another with
 * a sharded saver of all global variables, like TensorFlow's scaffold (an init_func is called with
 * that one). FAILED_PRECONDITION if the collection "savers" has several.
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
 * The graph to create sessions with: the meta graph's, with the built nodes.
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
 * The op that runs after the init op, and in each worker.
 *
 * Returns: (nullable)
 */
const char *muster_scaffold_local_init_op (MusterScaffold *self);

/**
 * muster_scaffold_ready_op:
 *
 * The op that returns the names of uninitialised variables; NULL for a model without variables.
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
 * The tensor with the summaries for TensorBoard.
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
 * The feeds passed in for the init op; borrowed, NULL if there are none.
 */
const MusterFeed *muster_scaffold_init_feeds (MusterScaffold *self, gsize *n);
gboolean muster_scaffold_has_init_func (MusterScaffold *self);
/**
 * muster_scaffold_call_init_func: (skip)
 *
 * Calls the scaffold's init function; TRUE if there is none. A MusterInitFunc whose user_data is
 * the scaffold.
 */
gboolean muster_scaffold_call_init_func (MusterSession *session, gint64 deadline_us,
                                         GCancellable *cancellable, gpointer scaffold,
                                         GError **error);

/* The number of variables, including local ones. */
gsize muster_scaffold_n_variables (MusterScaffold *self);

G_END_DECLS
