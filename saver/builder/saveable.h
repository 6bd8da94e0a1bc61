// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * MusterNamedTensor:
 * @name: its name; of a saveable's tensors, the key
 * @tensor: its value
 *
 * A tensor and its name. The struct owns both.
 */
typedef struct {
  char *name;
  MusterTensor *tensor;
} MusterNamedTensor;

#define MUSTER_TYPE_NAMED_TENSOR (muster_named_tensor_get_type ())
GType muster_named_tensor_get_type (void);

/**
 * muster_named_tensor_new:
 * @name: its name
 * @tensor: its value
 *
 * A tensor with a name.
 *
 * Returns: (transfer full): both
 */
MusterNamedTensor *muster_named_tensor_new (const char *name, MusterTensor *tensor);

/**
 * MusterSaveableTensors:
 *
 * The tensors of a [iface@Saveable], from key to tensor, as other languages than C exchange them
 * with it. Reference-counted; one thread.
 */
typedef struct _MusterSaveableTensors MusterSaveableTensors;

#define MUSTER_TYPE_SAVEABLE_TENSORS (muster_saveable_tensors_get_type ())
GType muster_saveable_tensors_get_type (void);

/**
 * muster_saveable_tensors_ref:
 * @self: tensors
 *
 * Takes another reference.
 *
 * Returns: (transfer full): the same tensors
 */
MusterSaveableTensors *muster_saveable_tensors_ref (MusterSaveableTensors *self);

/**
 * muster_saveable_tensors_unref:
 * @self: (transfer full) (nullable): tensors
 *
 * Drops a reference.
 */
void muster_saveable_tensors_unref (MusterSaveableTensors *self);

/**
 * muster_saveable_tensors_add:
 * @self: tensors
 * @key: the tensor's key; in the checkpoint it is `NAME/KEY`
 * @tensor: its value, which mustn't change afterwards
 *
 * Adds a tensor.
 */
void muster_saveable_tensors_add (MusterSaveableTensors *self, const char *key,
                                  MusterTensor *tensor);

/**
 * muster_saveable_tensors_keys:
 * @self: tensors
 *
 * The keys of all tensors.
 *
 * Returns: (array zero-terminated=1) (transfer full): the keys
 */
char **muster_saveable_tensors_keys (MusterSaveableTensors *self);

/**
 * muster_saveable_tensors_get:
 * @self: tensors
 * @key: a key
 *
 * A tensor by its key.
 *
 * Returns: (transfer none) (nullable): the tensor; `NULL` if there is none
 */
MusterTensor *muster_saveable_tensors_get (MusterSaveableTensors *self, const char *key);

/**
 * MusterSaveable:
 *
 * State outside the graph that belongs in its checkpoints: the position in the data, a table in
 * another process.
 *
 * A saver adds it under a name ([method@Saver.add_saveable]); its tensors are `NAME/KEY` in the
 * checkpoint, in a part written by the chief. The functions run on the thread that saves or
 * restores, never on a background thread: a background save writes copies made when it was
 * requested. At each save, and at each attempt of a save with a consistent cut, it is copied after
 * the variables, while the model is quiet ([method@Saver.set_cut]). C code implements copy_to_host
 * and restore, other languages collect and assign.
 */
#define MUSTER_TYPE_SAVEABLE (muster_saveable_get_type ())
G_DECLARE_INTERFACE (MusterSaveable, muster_saveable, MUSTER, SAVEABLE, GObject)

/**
 * MusterSaveableInterface:
 * @parent: the parent interface
 * @copy_to_host: (nullable): adds its tensors with muster_named_tensors_add(). They mustn't change
 *   afterwards. If `UNIMPLEMENTED` or `NULL`, and without collect, it can't be copied and is left
 *   out
 * @restore: (nullable): restores the tensors of a checkpoint, from key to tensor, after the graph's
 *   variables were assigned. If `NULL`, and without assign, the tensors are saved for other readers
 *   only
 * @retrieve: (nullable): fetches values that are stored elsewhere, before copy_to_host; once for
 *   each save, even if it was added under several names
 * @collect: (nullable): instead of copy_to_host
 * @assign: (nullable): instead of restore
 *
 * What a saveable does. Each function is optional.
 */
struct _MusterSaveableInterface {
  GTypeInterface parent;
  gboolean (*copy_to_host) (MusterSaveable *self, GPtrArray *tensors, GError **error);
  gboolean (*restore) (MusterSaveable *self, GHashTable *tensors, GError **error);
  gboolean (*retrieve) (MusterSaveable *self, GError **error);
  gboolean (*collect) (MusterSaveable *self, MusterSaveableTensors *tensors, GError **error);
  gboolean (*assign) (MusterSaveable *self, MusterSaveableTensors *tensors, GError **error);
};

/**
 * MusterSaveableInterface::copy_to_host: (skip)
 * @self: a saveable
 * @tensors: (element-type MusterNamedTensor): where its tensors are added
 * @error: return location for an error
 *
 * Adds its tensors with muster_named_tensors_add().
 *
 * Returns: `TRUE` if it was copied
 */

/**
 * MusterSaveableInterface::restore: (skip)
 * @self: a saveable
 * @tensors: (element-type utf8 MusterTensor): its tensors in the checkpoint, by key
 * @error: return location for an error
 *
 * Restores its tensors, after the graph's variables were assigned.
 *
 * Returns: `TRUE` if it was restored
 */

/**
 * MusterSaveableInterface::retrieve:
 * @self: a saveable
 * @error: return location for an error
 *
 * Fetches values that are stored elsewhere, before they are copied.
 *
 * Returns: `TRUE` if they were fetched
 */

/**
 * MusterSaveableInterface::collect:
 * @self: a saveable
 * @tensors: where it adds its tensors, by [method@SaveableTensors.add]
 * @error: return location for an error
 *
 * Adds its tensors to those of a checkpoint. `UNIMPLEMENTED`: it can't be copied and is left out.
 *
 * Returns: `TRUE` if it was copied
 */

/**
 * MusterSaveableInterface::assign:
 * @self: a saveable
 * @tensors: its tensors in the checkpoint
 * @error: return location for an error
 *
 * Restores its tensors, after the graph's variables were assigned.
 *
 * Returns: `TRUE` if it was restored
 */

/**
 * muster_named_tensors_add: (skip)
 * @tensors: (element-type MusterNamedTensor): the argument of copy_to_host
 * @key: the tensor's key
 * @tensor: its value, which is referenced
 *
 * Adds a tensor. In other languages [method@SaveableTensors.add].
 */
void muster_named_tensors_add (GPtrArray *tensors, const char *key, MusterTensor *tensor);

/**
 * MusterSaveableFlags:
 * @MUSTER_SAVEABLE_DEFAULT: none of the others
 * @MUSTER_SAVEABLE_WEAK: not kept alive by the saver; a save or restore after it was freed is
 *   `FAILED_PRECONDITION` with its name
 * @MUSTER_SAVEABLE_REQUIRED: if it can't be copied, the save fails
 * @MUSTER_SAVEABLE_OPTIONAL: a checkpoint without its tensors can be restored; otherwise that is
 *   `NOT_FOUND`
 *
 * How a saver treats a saveable.
 */
typedef enum {
  MUSTER_SAVEABLE_DEFAULT = 0,
  MUSTER_SAVEABLE_WEAK = 1 << 0,
  MUSTER_SAVEABLE_REQUIRED = 1 << 1,
  MUSTER_SAVEABLE_OPTIONAL = 1 << 2,
} MusterSaveableFlags;

G_END_DECLS
