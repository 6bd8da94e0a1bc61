// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"

G_BEGIN_DECLS

/* MusterObjectNames are the readable names in a checkpoint of objects, as TensorFlow 2's
 * tf.train.Checkpoint, Keras and a SavedModel write it: there a tensor's name is a key such as
 * "net/dense_1/kernel/.ATTRIBUTES/VARIABLE_VALUE", and the string tensor
 * MUSTER_OBJECT_GRAPH_KEY (a TrackableObjectGraph) tells which variable it was. Immutable; any
 * thread. */

#define MUSTER_OBJECT_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

typedef struct _MusterObjectNames MusterObjectNames;

/* One tensor; all borrowed. */
typedef struct {
  const char *key;       /* its name in the checkpoint */
  const char *path;      /* from the root object, "net/dense_1/kernel" */
  const char *full_name; /* (nullable) what its variable was called, "dense_1/kernel": several may
                            be called the same */
} MusterObjectName;

/* Reads them: NULL without an error where the checkpoint isn't one of objects. DATA_LOSS where the
 * graph is damaged, RESOURCE_EXHAUSTED where it is out of all proportion. */
MusterObjectNames *muster_object_names_read (MusterBundleReader *reader, GError **error);
void muster_object_names_free (MusterObjectNames *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterObjectNames, muster_object_names_free)

/* All tensors but the graph itself, in key order. */
gsize muster_object_names_n (const MusterObjectNames *self);
const MusterObjectName *muster_object_names_at (const MusterObjectNames *self, gsize i);

/* The name of a key, or NULL. */
const MusterObjectName *muster_object_names_find (const MusterObjectNames *self, const char *key);

/* The key that a person or a program without the objects means: by the variable's full name, by the
 * path of the key, or by any path through the objects ("net/layers/1/kernel"); a key is its own.
 * NULL where there is none, and where several variables have that full name: *n_found (nullable
 * out) tells how many. */
const char *muster_object_names_key_of (const MusterObjectNames *self, const char *name,
                                        guint *n_found);

G_END_DECLS
