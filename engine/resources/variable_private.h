// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "engine/resources/variable.h"

G_BEGIN_DECLS

/* What only the engine's own files use. */

MusterVariable *muster_variable_new (const char *container, const char *name, MusterDType dtype,
                                     gboolean is_resource, int n_dims, const gint64 *dims);
/* Sets the value of a variable that isn't shared yet; not counted by muster_variable_version (). */
void muster_variable_begin_with (MusterVariable *self, MusterTensor *value);
gboolean muster_variable_is_resource (MusterVariable *self);

/* How often variables have gained or lost their value on the calling thread. A step compares it
 * before and after, to detect its own changes only. */
guint64 muster_variable_version (void);

G_END_DECLS
