// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/membership.h"
#include "train/elastic/elastic.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* The hook of a round, before those that act on a step: ends the round between two steps when the
 * role changes or the membership is lost, and reports the batches that were done. elastic must
 * outlive it. */
MusterHook *muster_elastic_hook_new (MusterElastic *elastic);

/* What it needs of the round; elastic.c. */

/* The session of the round is there (coordinator), or it is being created (NULL). */
void muster_elastic_set_session (MusterElastic *self, MusterCoordinator *coordinator);
/* Before a step: FALSE with CANCELLED if the slot isn't this task's any more. */
gboolean muster_elastic_check (MusterElastic *self, GError **error);
/* After a step: FALSE if the round ends here. */
gboolean muster_elastic_may_step (MusterElastic *self, gboolean has_trained);

G_END_DECLS
