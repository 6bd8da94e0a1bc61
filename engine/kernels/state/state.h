// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/dispatch.h"

G_BEGIN_DECLS

/* A resource handle doesn't say what its variable holds; a kernel that reads or writes one asks. */
gboolean muster_check_variable_dtype (MusterVariable *variable, MusterDType dtype, GError **error);

G_END_DECLS
