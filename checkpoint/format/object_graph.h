// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"

G_BEGIN_DECLS

/**
 * MUSTER_OBJECT_GRAPH_KEY:
 *
 * The name of the string tensor (a `TrackableObjectGraph`) that maps an object-based checkpoint's
 * keys to variables.
 */
#define MUSTER_OBJECT_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

/**
 * MusterObjectNames:
 *
 * The readable names in an object-based checkpoint, as `tf.train.Checkpoint`, Keras and SavedModel
 * write it. There a tensor's name is a key such as
 * `net/dense_1/kernel/.ATTRIBUTES/VARIABLE_VALUE`, and the tensor [const@OBJECT_GRAPH_KEY] maps it
 * to a variable. Immutable; any thread.
 */
typedef struct _MusterObjectNames MusterObjectNames;

#define MUSTER_TYPE_OBJECT_NAMES (muster_object_names_get_type ())
GType muster_object_names_get_type (void);

/**
 * MusterObjectName:
 * @key: the tensor's name in the checkpoint
 * @path: its path from the root object: `net/dense_1/kernel`
 * @full_name: (nullable): the variable's name, `dense_1/kernel`; not necessarily unique
 *
 * A tensor of an object-based checkpoint. What [struct@ObjectNames] returns is valid as long as
 * that.
 */
typedef struct {
  const char *key;
  const char *path;
  const char *full_name;
} MusterObjectName;

#define MUSTER_TYPE_OBJECT_NAME (muster_object_name_get_type ())
GType muster_object_name_get_type (void);

/**
 * muster_object_names_read:
 * @reader: a checkpoint
 * @error: return location for an error
 *
 * Reads the names. `DATA_LOSS` if the object graph is damaged, `RESOURCE_EXHAUSTED` if it is too
 * large.
 *
 * Returns: (transfer full) (nullable): the names; `NULL` without an error if the checkpoint isn't
 *   object-based
 */
MusterObjectNames *muster_object_names_read (MusterBundleReader *reader, GError **error);

/**
 * muster_object_names_ref:
 * @self: names
 *
 * Takes another reference.
 *
 * Returns: (transfer full): the same names
 */
MusterObjectNames *muster_object_names_ref (MusterObjectNames *self);

/**
 * muster_object_names_free:
 * @self: (transfer full) (nullable): names
 *
 * Drops a reference; the last one frees them.
 */
void muster_object_names_free (MusterObjectNames *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterObjectNames, muster_object_names_free)

/**
 * muster_object_names_n:
 * @self: names
 *
 * The number of tensors, without the object graph.
 *
 * Returns: their number
 */
gsize muster_object_names_n (const MusterObjectNames *self);

/**
 * muster_object_names_at:
 * @self: names
 * @i: below [method@ObjectNames.n]
 *
 * A tensor by its place in the order of keys.
 *
 * Returns: (transfer none): its names, valid as long as @self
 */
const MusterObjectName *muster_object_names_at (const MusterObjectNames *self, gsize i);

/**
 * muster_object_names_find:
 * @self: names
 * @key: a tensor's name in the checkpoint
 *
 * The names of a key.
 *
 * Returns: (transfer none) (nullable): its names, valid as long as @self; `NULL` if there is none
 */
const MusterObjectName *muster_object_names_find (const MusterObjectNames *self, const char *key);

/**
 * muster_object_names_key_of:
 * @self: names
 * @name: a name
 * @n_found: (out) (optional): the number of variables with that full name
 *
 * Finds a key by the variable's full name, by the key's path, or by any path through the objects
 * (`net/layers/1/kernel`); a key matches itself.
 *
 * Returns: (transfer none) (nullable): the key; `NULL` if there is none, or if several variables
 *   have that full name
 */
const char *muster_object_names_key_of (const MusterObjectNames *self, const char *name,
                                        guint *n_found);

G_END_DECLS
