// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "engine/resources/variable.h"

G_BEGIN_DECLS

/* What only the engine's own files do with a variable. */

MusterVariable *muster_variable_new (const char *container, const char *name, MusterDType dtype,
                                     gboolean is_resource, int n_dims, const gint64 *dims);
/* The value of one that nobody has seen yet: it doesn't count below. */
void muster_variable_begin_with (MusterVariable *self, MusterTensor *value);
gboolean muster_variable_is_resource (MusterVariable *self);

/* How often a variable went from no value to a value or back on the calling thread: a step compares
 * the count before and after, and so knows of its own changes only. */
guint64 muster_variable_version (void);

G_END_DECLS
