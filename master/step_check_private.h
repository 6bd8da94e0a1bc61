// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/step.h"

G_BEGIN_DECLS

/* Checks a step's pointers for NULL; the feeds' values only with with_values. INVALID_ARGUMENT
 * names the public function and the pointer. */
gboolean muster_step_check (const char *function, const MusterStep *step, gboolean with_values,
                            GError **error);

/* Whether a step failed since a variable has no value: by the master's text, as TensorFlow has no
 * other way to report it. */
gboolean muster_step_lacks_value (const GError *failure);

G_END_DECLS
