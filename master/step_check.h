// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/step.h"

G_BEGIN_DECLS

/* Whether what a step points to is there; the feeds' values only where they count. INVALID_ARGUMENT
 * names the public function, and which of them is NULL. */
gboolean muster_step_check (const char *function, const MusterStep *step, gboolean with_values,
                            GError **error);

G_END_DECLS
