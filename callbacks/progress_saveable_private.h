// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/builder/saveable.h"

G_BEGIN_DECLS

/* The last saved epoch and batch, as a part of the checkpoint; -1: none. */

#define MUSTER_TYPE_PROGRESS_SAVEABLE (muster_progress_saveable_get_type ())
G_DECLARE_FINAL_TYPE (MusterProgressSaveable, muster_progress_saveable, MUSTER, PROGRESS_SAVEABLE,
                      GObject)

struct _MusterProgressSaveable {
  GObject parent;
  gint64 epoch;
  gint64 batch;
};

MusterProgressSaveable *muster_progress_saveable_new (void);

G_END_DECLS
