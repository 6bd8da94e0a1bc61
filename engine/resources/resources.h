// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "engine/resources/resource.h"
#include "engine/resources/variable.h"
#include "graph/graph_nodes.h"

G_BEGIN_DECLS

/* MusterResources keeps the variables of a master by container and name, for all its sessions
 * (spec: variables outlive sessions), and what else it keeps: queues, tables, accumulators.
 * Reference and resource variables have names of their own, as in TensorFlow, and so has each type
 * of resource. A session has one more, for what is its own. Counted; any thread. */

typedef struct _MusterResources MusterResources;

#define MUSTER_DEFAULT_CONTAINER "localhost"

MusterResources *muster_resources_new (void);
MusterResources *muster_resources_ref (MusterResources *self);
void muster_resources_unref (MusterResources *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterResources, muster_resources_unref)

/* What was found last time, for who asks the same again and again: it holds as long as nothing has
 * gone since. Guarded by the lock of the resources that are asked, so they must always be the same.
 */
typedef struct {
  guint64 generation;
  gpointer what; /* (not owned) a MusterVariable or a MusterResource */
} MusterSeen;

/* Finds a variable by container, name and kind; it is made without a value if
 * there is none (transfer full). INVALID_ARGUMENT if it is there with another dtype. */
typedef struct {
  const char *container;
  const char *name;
  gboolean is_resource;
  guint hash; /* of those three; 0: not known yet */
  MusterDType dtype;
  const Tensorflow__NodeDef *def; /* whose attribute "shape" a new one gets */
  MusterSeen *seen;               /* (nullable) kept for these wants alone */
} MusterVariableWanted;

guint muster_resources_hash (const char *container, const char *name, gboolean is_resource);
MusterVariable *muster_resources_variable (MusterResources *self,
                                           const MusterVariableWanted *wanted, GError **error);

/* Finds a resource by type, container and name; it is made if there is none (transfer full). NULL
 * with the error of make, or of the type's fits for one that was made by somebody else. */
typedef struct {
  const MusterResourceType *type;
  const char *container;
  const char *name;
  gboolean is_private;            /* one that is made gets a number before its name */
  const Tensorflow__NodeDef *def; /* the node that wants it */
  MusterResourceMake make;
  gpointer data;    /* (not owned) make's */
  MusterSeen *seen; /* (nullable) kept for these wants alone */
} MusterResourceWanted;

MusterResource *muster_resources_get (MusterResources *self, const MusterResourceWanted *wanted,
                                      GError **error);

/* Forgets a resource, which lives on for those who hold it; FALSE if it isn't kept here. */
gboolean muster_resources_forget (MusterResources *self, MusterResource *resource);

/* Drops the variables and resources of the containers, or all (NULL or empty), and cancels who
 * waits at one. TRUE if a variable had a value. */
gboolean muster_resources_clear (MusterResources *self, const char *const *containers);

G_END_DECLS
