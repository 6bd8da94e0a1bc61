// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/background.h"

#include "base/background.h"

#define TEXT(X, name) X (KEPT, const char *, name, g_strdup, MUSTER_FREE_STRING)
#define WHERE(X)      X (KEPT, MusterStorage *, storage, g_object_ref, g_object_unref) TEXT (X, prefix)

#define PIN(X) WHERE (X) TEXT (X, why) X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_checkpoint_pin, muster_checkpoint_pin, "muster-pin", gboolean, MUSTER_PLAIN,
              PIN)

#define UNPIN(X) WHERE (X) X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_checkpoint_unpin, muster_checkpoint_unpin, "muster-unpin", gboolean,
              MUSTER_PLAIN, UNPIN)

#define SET_METRIC(X)                                                                              \
  WHERE (X) TEXT (X, name) X (VALUE, double, value) X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_checkpoint_set_metric, muster_checkpoint_set_metric, "muster-mark", gboolean,
              MUSTER_PLAIN, SET_METRIC)
