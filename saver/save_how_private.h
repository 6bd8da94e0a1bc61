// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/save_ticket_private.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* How a save goes; zeroed: a plain save. What it points to stays valid until the save has ended. */
typedef struct {
  const char *prefix;       /* (nullable) the checkpoint, in place of DIRECTORY/BASE-STEP */
  const char *save_tensor;  /* (nullable) in place of the SaverDef's, for values that no longer
                               change; it uses the same filename tensor */
  const GPtrArray *tensors; /* (nullable) (element-type MusterNamedTensor) from outside the graph,
                               in place of the saveables' current values */
  gboolean unlisted;        /* no state file, no list, no announcement */
  MusterTierSet due;
  void (*written) (gpointer user_data); /* (nullable) called when the master has written everything,
                                           before publishing */
  gpointer written_data;
} MusterSaveHow;

/* muster_saver_save_with (), for a ticket (nullable) of a save that has begun. */
gboolean muster_saver_save_for_ticket (MusterSaver *self, MusterSession *session,
                                       const char *directory, gint64 step, const MusterSaveHow *how,
                                       MusterSaveTicket *ticket, MusterSaved *saved,
                                       gint64 deadline_us, GCancellable *cancellable,
                                       GError **error);

G_END_DECLS
