// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* tensorflow.Example as bytes: lists of features by name, each a list of strings, floats or int64s.
 * Read in place and without nesting; what is let pass and what isn't is TensorFlow's to the letter
 * (a length that is too long, say, ends with what it is in). Nothing is taken on trust: sizes only
 * count what lies there. Values are borrowed from the bytes. */

typedef struct {
  MusterString name;
  MusterString value; /* a Feature, not looked at yet */
} MusterFeature;

/* Appends what is there, in its order, names given twice and all, to an array of MusterFeature,
 * each taken from the budget. INVALID_ARGUMENT where this is no Example. */
gboolean muster_example_read (MusterString bytes, MusterBudget *budget, GArray *features,
                              GError **error);

/* What a feature has, by its value: STRING, FLOAT or INT64; INVALID: nothing. FALSE where it is
 * none of them. */
gboolean muster_feature_dtype (MusterString feature, MusterDType *dtype);

/* How many values a feature of that dtype has; -1 where they can't be read. */
gint64 muster_feature_count (MusterString feature, MusterDType dtype);

/* Copies so many values as have been counted, to MusterString, float or gint64. */
void muster_feature_copy (MusterString feature, MusterDType dtype, void *values);

G_END_DECLS
