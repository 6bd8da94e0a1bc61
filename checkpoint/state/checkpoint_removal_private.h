// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_state.h"

G_BEGIN_DECLS

/* What is done before a checkpoint is removed, so that nobody misses it. */

/* TRUE while a reader holds it: then it can't be removed. */
gboolean muster_checkpoint_is_read (MusterStorage *storage, const char *prefix);

/* Takes a checkpoint, by its prefix or base name, from the list. TRUE if it was listed. */
gboolean muster_checkpoint_state_forget (MusterCheckpointState *self, const char *prefix);

G_END_DECLS
