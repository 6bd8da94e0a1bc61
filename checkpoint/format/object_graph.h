// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"

G_BEGIN_DECLS

/* MusterObjectNames is the readable names in an object-based checkpoint, as tf.train.Checkpoint,
 * Keras and SavedModel write it. There a tensor's name is a key such as
 * "net/dense_1/kernel/.ATTRIBUTES/VARIABLE_VALUE"; the string tensor MUSTER_OBJECT_GRAPH_KEY (a
 * TrackableObjectGraph) maps it to a variable. Immutable; any thread. */

#define MUSTER_OBJECT_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

typedef struct _MusterObjectNames MusterObjectNames;

/* One tensor. The strings are borrowed. */
typedef struct {
  const char *key;  /* its name in the checkpoint */
  const char *path; /* from the root object, "net/dense_1/kernel" */
  const char
      *full_name; /* (nullable) the variable's name, "dense_1/kernel"; not necessarily unique */
} MusterObjectName;

/* Reads the names. NULL without an error if the checkpoint isn't object-based. DATA_LOSS if the
 * object graph is damaged, RESOURCE_EXHAUSTED if it is too large. */
MusterObjectNames *muster_object_names_read (MusterBundleReader *reader, GError **error);
void muster_object_names_free (MusterObjectNames *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterObjectNames, muster_object_names_free)

/* All tensors except the object graph, in key order. */
gsize muster_object_names_n (const MusterObjectNames *self);
const MusterObjectName *muster_object_names_at (const MusterObjectNames *self, gsize i);

/* The name with a key, or NULL. */
const MusterObjectName *muster_object_names_find (const MusterObjectNames *self, const char *key);

/* Finds a key by the variable's full name, by the key's path, or by any path through the objects
 * ("net/layers/1/kernel"); a key matches itself. NULL if there is none, or if several variables
 * have that full name: *n_found (nullable) is their number. */
const char *muster_object_names_key_of (const MusterObjectNames *self, const char *name,
                                        guint *n_found);

G_END_DECLS
