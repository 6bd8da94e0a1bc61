// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterSaveable is state outside the graph that belongs in its checkpoints: the position in the
 * data, a table in another process. A saver adds it under a name; its tensors are NAME/KEY in the
 * checkpoint, in a part written by the chief. The functions run on the thread that saves or
 * restores, never on a background thread: a background save writes copies made when it was
 * requested. */

typedef struct {
  char *name;           /* (owned) */
  MusterTensor *tensor; /* (owned) */
} MusterNamedTensor;

#define MUSTER_TYPE_SAVEABLE (muster_saveable_get_type ())
G_DECLARE_INTERFACE (MusterSaveable, muster_saveable, MUSTER, SAVEABLE, GObject)

struct _MusterSaveableInterface {
  GTypeInterface parent;
  /* Adds its tensors with muster_named_tensors_add (). They mustn't change afterwards. If
   * UNIMPLEMENTED or NULL, it can't be copied and is left out. */
  gboolean (*copy_to_host) (MusterSaveable *self, GPtrArray *tensors, GError **error);
  /* optional: restores the tensors of a checkpoint, from KEY to tensor (element-type utf8
   * MusterTensor), after the graph's variables were assigned. If NULL, the tensors are saved for
   * other readers only. */
  gboolean (*restore) (MusterSaveable *self, GHashTable *tensors, GError **error);
  /* optional: fetches values that are stored elsewhere, before copy_to_host; once for each save,
   * even if it was added under several names. */
  gboolean (*retrieve) (MusterSaveable *self, GError **error);
};

/* tensors is copy_to_host's argument; the tensor is referenced. */
void muster_named_tensors_add (GPtrArray *tensors, const char *key, MusterTensor *tensor);

typedef enum {
  MUSTER_SAVEABLE_DEFAULT = 0,
  MUSTER_SAVEABLE_WEAK = 1 << 0,     /* not kept alive by the saver; a save or restore after it was
                                        freed is FAILED_PRECONDITION with its name */
  MUSTER_SAVEABLE_REQUIRED = 1 << 1, /* if it can't be copied, the save fails */
  MUSTER_SAVEABLE_OPTIONAL =
      1 << 2, /* a checkpoint without its tensors can be restored; otherwise that is NOT_FOUND */
} MusterSaveableFlags;

G_END_DECLS
