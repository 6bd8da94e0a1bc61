// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"

G_BEGIN_DECLS

/**
 * MusterScaffold:
 *
 * What is needed to start a model, like TensorFlow's `Scaffold` (behaviours MON.1 to MON.9). Each
 * item is the one passed in, else the one in the meta graph's collection of that name, else it is
 * built:
 *
 * - init_op: the initializers of all global variables
 * - local_init_op: those of the local variables, and the tables' ("table_initializer")
 * - ready_for_local_init_op: the names of uninitialised global variables; built, and kept, only if
 *   there is a local init op
 * - ready_op: the names of all uninitialised variables
 * - summary_op: "summaries" merged; may be missing
 * - saver: only by [method@Scaffold.with_saver], or in a meta graph from
 *   [func@Saver.default]
 *
 * Built nodes have the same names in every process, so that graphs still compare equal on the
 * master. A graph is never changed: adding nodes gives another graph, so there is no finalize and
 * no un-finalize (MON.6, MON.9). Immutable and reference-counted; strings are borrowed from it.
 */
typedef struct _MusterScaffold MusterScaffold;

#define MUSTER_TYPE_SCAFFOLD (muster_scaffold_get_type ())
GType muster_scaffold_get_type (void);

/**
 * MusterScaffoldInitFunc:
 * @self: the scaffold that it belongs to
 * @session: the session to initialise in
 * @deadline_us: of the preparation
 * @cancellable: (nullable): of the preparation
 * @user_data: the caller's
 * @error: set it to fail the preparation
 *
 * The chief's initialisation after the init op. It must respect the deadline and the cancellable.
 *
 * Returns: FALSE with an error fails the preparation
 */
typedef gboolean (*MusterScaffoldInitFunc) (MusterScaffold *self, MusterSession *session,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            gpointer user_data, GError **error);

/**
 * MusterScaffoldOptions:
 * @init_op: (nullable): the op that initialises the model; NULL: as [struct@Scaffold] says
 * @local_init_op: (nullable): runs after it, and in each worker
 * @ready_op: (nullable): returns the names of uninitialised variables
 * @ready_for_local_init_op: (nullable): the gate before the local init op
 * @summary_op: (nullable): "": none
 * @train_op: (nullable): trains one step
 * @global_step: (nullable): the variable, or the tensor that reads it
 * @init_feeds: (nullable) (array length=n_init_feeds): fed to the init op; names copied, tensors
 *   referenced
 * @n_init_feeds: the number of @init_feeds
 * @init_func: (nullable): called with the scaffold that it belongs to
 * @init_func_data: its data, which must live as long as the scaffold and those copied from it
 * @copy_from: (nullable): items that aren't set here are those set there; an init_func is called
 *   with the new scaffold
 *
 * The items of a scaffold that aren't the meta graph's. Strings are copied.
 */
typedef struct {
  const char *init_op;
  const char *local_init_op;
  const char *ready_op;
  const char *ready_for_local_init_op;
  const char *summary_op;
  const char *train_op;
  const char *global_step;
  const MusterFeed *init_feeds;
  gsize n_init_feeds;
  MusterScaffoldInitFunc init_func;
  gpointer init_func_data;
  MusterScaffold *copy_from;
  /*< private >*/
  GBytes *init_func_owner;
} MusterScaffoldOptions;

#define MUSTER_TYPE_SCAFFOLD_OPTIONS (muster_scaffold_options_get_type ())
GType muster_scaffold_options_get_type (void);

/**
 * muster_scaffold_options_new:
 * @copy_from: (nullable): a scaffold whose given items these are, where they aren't set
 *
 * Options on the heap, for other languages: strings are fields, the rest is set by methods.
 *
 * Returns: (transfer full): options
 */
MusterScaffoldOptions *muster_scaffold_options_new (MusterScaffold *copy_from);

/**
 * muster_scaffold_options_feed:
 * @self: options from new or copy
 * @name: the tensor to feed: "x:0" or "x"
 * @value: its value, which is referenced
 *
 * Adds a feed for the init op.
 */
void muster_scaffold_options_feed (MusterScaffoldOptions *self, const char *name,
                                   MusterTensor *value);

/**
 * muster_scaffold_options_set_init_func:
 * @self: options from new or copy
 * @init_func: (nullable) (scope notified) (closure user_data) (destroy destroy): initialises the
 *   model after the init op
 * @user_data: passed to @init_func
 * @destroy: frees @user_data when neither options nor a scaffold made with them need it
 *
 * Sets the chief's own initialisation.
 */
void muster_scaffold_options_set_init_func (MusterScaffoldOptions *self,
                                            MusterScaffoldInitFunc init_func, gpointer user_data,
                                            GDestroyNotify destroy);

/**
 * muster_scaffold_new:
 * @meta_graph: the model
 *
 * A scaffold of everything in the meta graph. INVALID_ARGUMENT if that contradicts itself.
 *
 * Returns: (transfer full): the scaffold
 */
MusterScaffold *muster_scaffold_new (MusterMetaGraph *meta_graph, GError **error);

/**
 * muster_scaffold_new_with:
 * @meta_graph: the model
 * @options: (nullable): items that aren't the meta graph's
 *
 * A scaffold with items of the caller's. INVALID_ARGUMENT as well if the graph lacks an item that
 * was passed in, or a collection is ambiguous.
 *
 * Returns: (transfer full): the scaffold
 */
MusterScaffold *muster_scaffold_new_with (MusterMetaGraph *meta_graph,
                                          const MusterScaffoldOptions *options, GError **error);

/**
 * muster_scaffold_load:
 * @path: a .meta file
 *
 * A scaffold of a file's meta graph, completed by [method@MetaGraph.complete]. Errors name the
 * file. DATA_LOSS if a checkpoint's meta graph was changed after the save. The meta graph that a
 * job with positions saved needs their feeds in each step (train/position/position.h): for steps of
 * your own, load the original file.
 *
 * Returns: (transfer full): the scaffold
 */
MusterScaffold *muster_scaffold_load (const char *path, GError **error);

/**
 * muster_scaffold_load_with:
 * @path: a .meta file
 * @train_ops: (nullable) (array zero-terminated=1): the ops that train, together one step; %NULL:
 *   the graph's
 *
 * Like [ctor@Scaffold.load], with other train ops.
 *
 * Returns: (transfer full): the scaffold
 */
MusterScaffold *muster_scaffold_load_with (const char *path, const char *const *train_ops,
                                           GError **error);

/**
 * muster_scaffold_complete:
 * @self: the scaffold
 *
 * A scaffold whose meta graph is completed by [method@MetaGraph.complete]: itself if it is. A
 * train op that was passed in is the only one.
 *
 * Returns: (transfer full): the scaffold
 */
MusterScaffold *muster_scaffold_complete (MusterScaffold *self, GError **error);

/**
 * muster_scaffold_completed:
 * @self: the scaffold
 *
 * What its meta graph lacked and was added, a line for each.
 *
 * Returns: (array zero-terminated=1) (transfer none): the lines, possibly none
 */
const char *const *muster_scaffold_completed (MusterScaffold *self);

/**
 * muster_scaffold_with_saver:
 * @self: the scaffold
 *
 * A scaffold that can save and restore all global variables in the V2 format: itself if its meta
 * graph's saver does, else another with a saver of them all, like TensorFlow's scaffold (an
 * init_func is called with that one).
 *
 * Returns: (transfer full): the scaffold
 */
MusterScaffold *muster_scaffold_with_saver (MusterScaffold *self, GError **error);

/**
 * muster_scaffold_ref:
 * @self: the scaffold
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @self
 */
MusterScaffold *muster_scaffold_ref (MusterScaffold *self);

/**
 * muster_scaffold_unref:
 * @self: (transfer full) (nullable): the scaffold
 *
 * Drops a reference.
 */
void muster_scaffold_unref (MusterScaffold *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterScaffold, muster_scaffold_unref)

/**
 * muster_scaffold_meta_graph:
 * @self: the scaffold
 *
 * The meta graph.
 *
 * Returns: (transfer none): the meta graph
 */
MusterMetaGraph *muster_scaffold_meta_graph (MusterScaffold *self);

/**
 * muster_scaffold_graph:
 * @self: the scaffold
 *
 * The graph to create sessions with: the meta graph's, with the built nodes.
 *
 * Returns: (transfer none): the graph
 */
MusterGraph *muster_scaffold_graph (MusterScaffold *self);

/**
 * muster_scaffold_init_op:
 * @self: the scaffold
 *
 * The op that initialises the global variables.
 *
 * Returns: (nullable): its name, borrowed
 */
const char *muster_scaffold_init_op (MusterScaffold *self);

/**
 * muster_scaffold_local_init_op:
 * @self: the scaffold
 *
 * The op that runs after the init op, and in each worker.
 *
 * Returns: (nullable): its name, borrowed
 */
const char *muster_scaffold_local_init_op (MusterScaffold *self);

/**
 * muster_scaffold_ready_op:
 * @self: the scaffold
 *
 * The op that returns the names of uninitialised variables; NULL for a model without variables.
 *
 * Returns: (nullable): its name, borrowed
 */
const char *muster_scaffold_ready_op (MusterScaffold *self);

/**
 * muster_scaffold_ready_for_local_init_op:
 * @self: the scaffold
 *
 * The gate before the local init op.
 *
 * Returns: (nullable): its name, borrowed
 */
const char *muster_scaffold_ready_for_local_init_op (MusterScaffold *self);

/**
 * muster_scaffold_train_op:
 * @self: the scaffold
 *
 * The op that trains one step.
 *
 * Returns: (nullable): its name, borrowed
 */
const char *muster_scaffold_train_op (MusterScaffold *self);

/**
 * muster_scaffold_summary_op:
 * @self: the scaffold
 *
 * The tensor with the summaries for TensorBoard.
 *
 * Returns: (nullable): its name, borrowed
 */
const char *muster_scaffold_summary_op (MusterScaffold *self);

/**
 * muster_scaffold_global_step:
 * @self: the scaffold
 *
 * The tensor to fetch for the global step: "global_step:0", or the output of an op that reads it
 * where it is a resource variable, which can't be fetched itself. Fetched together with the train
 * op, it may be the value before that step or after it. NULL if the model has none.
 *
 * Returns: (nullable): its name, borrowed
 */
const char *muster_scaffold_global_step (MusterScaffold *self);

/**
 * muster_scaffold_has_init_func:
 * @self: the scaffold
 *
 * Whether it has an init function.
 *
 * Returns: TRUE if one was passed in
 */
gboolean muster_scaffold_has_init_func (MusterScaffold *self);

/**
 * muster_scaffold_n_variables:
 * @self: the scaffold
 *
 * How many variables the model has.
 *
 * Returns: their number, including local ones
 */
gsize muster_scaffold_n_variables (MusterScaffold *self);

G_END_DECLS
