// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "saver/builder/saveable.h"

G_BEGIN_DECLS

/* A saveable that holds one number, "n". */

#define MUSTER_TYPE_NOTEBOOK (muster_notebook_get_type ())
G_DECLARE_FINAL_TYPE (MusterNotebook, muster_notebook, MUSTER, NOTEBOOK, GObject)

/* One whose number lies elsewhere: it has to be retrieved first. */
#define MUSTER_TYPE_FAR_NOTEBOOK (muster_far_notebook_get_type ())
GType muster_far_notebook_get_type (void);

struct _MusterNotebook {
  GObject parent;
  gint64 number;
  MusterError fails_to_copy; /* 0: it can be copied */
  gboolean fails_to_retrieve;
  gboolean is_mute; /* it can't be copied, without an error */
  guint n_copied, n_retrieved, n_restored;
  void (*copying) (gpointer data); /* (nullable) called when it is copied */
  gpointer copying_data;
};

MusterNotebook *muster_notebook_new (gint64 number);
MusterNotebook *muster_far_notebook_new (gint64 number);

G_END_DECLS
