// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/broadcast.h"

G_BEGIN_DECLS

/* The conjugates of n complex elements; out may be x. */
void muster_conjugate (MusterDType dtype, gint64 n, const void *x, void *out);

G_END_DECLS
