// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* The steps and callables of TensorFlow's MasterService. */
void muster_step_service_enter (MusterServer *server);

G_END_DECLS
