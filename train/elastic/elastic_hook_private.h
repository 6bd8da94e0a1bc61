// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/elastic/elastic_private.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* The hook of a round, before those that act on a step: makes no step in a slot that was lost.
 * elastic must outlive it. */
MusterHook *muster_elastic_hook_new (MusterElastic *elastic);

G_END_DECLS
