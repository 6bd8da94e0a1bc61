// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* Runs an op with a value fed to the tensor `name`. deadline_us is a step's. */
gboolean muster_session_run_op_fed (MusterSession *self, const char *op, const char *name,
                                    MusterTensor *value, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);

G_END_DECLS
