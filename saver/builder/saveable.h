// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterSaveable is state that lies outside the graph and belongs into its checkpoints: where the
 * training stands in its data, a table in another process. It is added to a saver under a name; its
 * tensors are NAME/KEY in the checkpoint, in a part that the chief writes, beside what the master
 * writes. All verbs run on the thread that saves or restores, never on a background one: a save in
 * the background writes the copies that were made when it was asked for. */

typedef struct {
  char *name;           /* (owned) */
  MusterTensor *tensor; /* (owned) */
} MusterNamedTensor;

#define MUSTER_TYPE_SAVEABLE (muster_saveable_get_type ())
G_DECLARE_INTERFACE (MusterSaveable, muster_saveable, MUSTER, SAVEABLE, GObject)

struct _MusterSaveableInterface {
  GTypeInterface parent;
  /* Adds its tensors, with muster_named_tensors_add (): what it keeps must not change them any
   * more. UNIMPLEMENTED, or no such verb: it can't be copied, and is left out. */
  gboolean (*copy_to_host) (MusterSaveable *self, GPtrArray *tensors, GError **error);
  /* optional: takes what a checkpoint holds of it, KEY (element-type utf8 MusterTensor) to tensor,
   * after the graph's variables have been assigned. Without: what was saved is for others. */
  gboolean (*restore) (MusterSaveable *self, GHashTable *tensors, GError **error);
  /* optional: brings values home that live elsewhere, before copy_to_host; once for each save, even
   * where it is added under several names. */
  gboolean (*retrieve) (MusterSaveable *self, GError **error);
};

/* tensors is copy_to_host's; the tensor is referenced. */
void muster_named_tensors_add (GPtrArray *tensors, const char *key, MusterTensor *tensor);

typedef enum {
  MUSTER_SAVEABLE_DEFAULT = 0,
  MUSTER_SAVEABLE_WEAK = 1 << 0,     /* the saver doesn't keep it alive; a save or restore after its
                                        end is FAILED_PRECONDITION with its name */
  MUSTER_SAVEABLE_REQUIRED = 1 << 1, /* where it can't be copied the save is refused */
  MUSTER_SAVEABLE_OPTIONAL = 1 << 2, /* a checkpoint that holds nothing of it is restored all the
                                        same, without it; otherwise that is NOT_FOUND */
} MusterSaveableFlags;

G_END_DECLS
