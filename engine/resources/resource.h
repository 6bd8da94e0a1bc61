// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "graph/graph_nodes.h"

G_BEGIN_DECLS

/* MusterResource is what a master keeps beside variables, to be found by its handle: a queue, a
 * table, an accumulator. What is in it is its type's business, a lock of its own included. Counted;
 * any thread. */

typedef struct _MusterResource MusterResource;

/* A kind of resource: one static struct each, told apart by its address. */
typedef struct {
  const char *kind; /* as TensorFlow calls it in its errors: "tensorflow::QueueInterface" */
  /* Without a shared name it goes by its node's, for all sessions. Else it is then the session's
   * own, under a name with a number, and ends with it (TensorFlow: "private to kernel"). The node's
   * attribute use_node_name_sharing says the same as this. */
  gboolean named_by_node;
  /* (nullable) FALSE with an error if a node that names the same one asks for something else. */
  gboolean (*fits) (gpointer data, const Tensorflow__NodeDef *node, GError **error);
  /* (nullable) It is dropped by a reset or with its session: whoever waits at it must be told, by
   * their muster_kernel_resume (). Nobody else finds it from here on. Called without a lock. */
  void (*cancel) (gpointer data);
  void (*free) (gpointer data);
} MusterResourceType;

/* Makes what is in it (transfer full), or NULL with an error. Called with the lock of all
 * resources: it doesn't wait and asks for no other one. */
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

/* Tells whoever waits at it. */
void muster_resource_cancel (MusterResource *self);

G_END_DECLS
