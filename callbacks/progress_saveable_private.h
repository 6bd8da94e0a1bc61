// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/builder/saveable.h"

G_BEGIN_DECLS

/* The epoch and the batch that were saved last, as a part of the checkpoint; -1 each: none. */

#define MUSTER_TYPE_SAVED_PLACE (muster_saved_place_get_type ())
G_DECLARE_FINAL_TYPE (MusterSavedPlace, muster_saved_place, MUSTER, SAVED_PLACE, GObject)

struct _MusterSavedPlace {
  GObject parent;
  gint64 epoch;
  gint64 batch;
};

MusterSavedPlace *muster_saved_place_new (void);

G_END_DECLS
