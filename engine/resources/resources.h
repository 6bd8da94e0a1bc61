// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "engine/resources/resource.h"
#include "engine/resources/variable.h"
#include "graph/graph_nodes_private.h"

G_BEGIN_DECLS

/* MusterResources stores a master's variables by container and name for all its sessions, and other
 * resources: queues, tables, accumulators. Reference variables, resource variables and each type of
 * resource have separate names, as in TensorFlow. A session has another one for its own resources.
 * Reference-counted; any thread. */

typedef struct _MusterResources MusterResources;

#define MUSTER_DEFAULT_CONTAINER "localhost"

MusterResources *muster_resources_new (void);
MusterResources *muster_resources_ref (MusterResources *self);
void muster_resources_unref (MusterResources *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterResources, muster_resources_unref)

/* Caches a result for repeated requests: valid until something is removed. Guarded by the lock of
 * the resources, which must always be the same. */
typedef struct {
  guint64 generation;
  gpointer what; /* (not owned) a MusterVariable or a MusterResource */
} MusterResourceCache;

/* Finds a variable by container, name and kind, or creates it without a value (transfer full).
 * INVALID_ARGUMENT if it exists with another dtype. */
typedef struct {
  const char *container;
  const char *name;
  gboolean is_resource;
  guint hash; /* of those three; 0: not computed */
  MusterDType dtype;
  const MusterNode *def;      /* its attribute "shape" is used for a new variable */
  MusterResourceCache *cache; /* (nullable) used for these arguments only */
} MusterVariableRequest;

guint muster_resources_hash (const char *container, const char *name, gboolean is_resource);
MusterVariable *muster_resources_variable (MusterResources *self,
                                           const MusterVariableRequest *wanted, GError **error);

/* Finds a resource by type, container and name, or creates it (transfer full). NULL with the error
 * of make, or of the type's fits for an existing one. */
typedef struct {
  const MusterResourceType *type;
  const char *container;
  const char *name;
  gboolean is_private;   /* a new one gets a number before its name */
  const MusterNode *def; /* the requesting node */
  MusterResourceMake make;
  gpointer data;              /* (not owned) argument of make */
  MusterResourceCache *cache; /* (nullable) used for these arguments only */
} MusterResourceRequest;

MusterResource *muster_resources_get (MusterResources *self, const MusterResourceRequest *wanted,
                                      GError **error);

/* Removes a resource, which exists on while it is referenced; FALSE if it isn't here. */
gboolean muster_resources_remove (MusterResources *self, MusterResource *resource);

/* Removes the variables and resources of the containers, or of all (NULL or empty), and cancels
 * waiting kernels. TRUE if a variable had a value. */
gboolean muster_resources_clear (MusterResources *self, const char *const *containers);

G_END_DECLS
