// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "graph/graph_nodes_private.h"

G_BEGIN_DECLS

/* MusterResource is an object of a master other than a variable, found by its handle: a queue, a
 * table, an accumulator. Its type manages the contents, including a lock. Reference-counted; any
 * thread. */

typedef struct _MusterResource MusterResource;

/* A type of resource: a static struct, identified by its address. */
typedef struct {
  const char *kind; /* TensorFlow's name for it in errors: "tensorflow::QueueInterface" */
  /* TRUE: without a shared name, the resource has its node's name and is shared by all sessions.
   * FALSE: it then belongs to the session, with a numbered name, and is freed with it (TensorFlow:
   * "private to kernel"). The node's attribute use_node_name_sharing has the same effect as TRUE.
   */
  gboolean named_by_node;
  /* (nullable) FALSE with an error if a node with that name requests something different. */
  gboolean (*fits) (gpointer data, const MusterNode *node, GError **error);
  /* (nullable) Called when a reset or the end of its session drops the resource: it must notify
   * waiting kernels by muster_kernel_resume (). It can't be found any more. Called without a lock.
   */
  void (*cancel) (gpointer data);
  void (*free) (gpointer data);
} MusterResourceType;

/* Creates the contents (transfer full), or returns NULL with an error. Called with the lock of all
 * resources: it mustn't block or request another resource. */
typedef gpointer (*MusterResourceMake) (const char *name, gpointer user_data, GError **error);

/* data (transfer full). */
MusterResource *muster_resource_new (const MusterResourceType *type, const char *container,
                                     const char *name, gpointer data);
MusterResource *muster_resource_ref (MusterResource *self);
void muster_resource_unref (MusterResource *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterResource, muster_resource_unref)

const MusterResourceType *muster_resource_type (const MusterResource *self);
const char *muster_resource_container (const MusterResource *self);
const char *muster_resource_name (const MusterResource *self);
gpointer muster_resource_data (const MusterResource *self);

/* Notifies waiting kernels. */
void muster_resource_cancel (MusterResource *self);

G_END_DECLS
