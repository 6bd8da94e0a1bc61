// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/text.h"

G_BEGIN_DECLS

/* Reads tensorflow.Example: lists of features by name, each a list of strings, floats or int64s, in
 * place and without recursion. It accepts and refuses exactly what TensorFlow does (a length that
 * is too long ends with the enclosing message, for example). Sizes count only what is actually
 * there. Values are borrowed from the bytes. */

typedef struct {
  MusterString name;
  MusterString value; /* a Feature, not parsed yet */
} MusterFeature;

/* Appends the features in their order, including duplicate names, as an array of MusterFeature.
 * INVALID_ARGUMENT if this isn't an Example, RESOURCE_EXHAUSTED if there are too many. */
gboolean muster_example_read (MusterString bytes, MusterText *features, GError **error);

static inline gsize
muster_example_n_features (const MusterText *features)
{
  return features->size / sizeof (MusterFeature);
}

static inline const MusterFeature *
muster_example_feature (const MusterText *features, gsize i)
{
  return (const MusterFeature *)(gconstpointer)features->data + i;
}

/* The type of a feature's values: STRING, FLOAT or INT64; INVALID: none. FALSE if it is malformed.
 */
gboolean muster_feature_dtype (MusterString feature, MusterDType *dtype);

/* The number of values of a feature with that dtype; -1 if they are malformed. */
gint64 muster_feature_count (MusterString feature, MusterDType dtype);

/* Copies the counted values to MusterString, float or gint64. */
void muster_feature_copy (MusterString feature, MusterDType dtype, void *values);

G_END_DECLS
