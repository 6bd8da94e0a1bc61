// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/step_builder.h"

G_BEGIN_DECLS

/* A copy for a call in the background, during which the builder may be changed. */
MusterStepBuilder *muster_step_builder_copy (MusterStepBuilder *self);

G_END_DECLS
