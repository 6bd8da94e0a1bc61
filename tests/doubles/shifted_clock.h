// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* The machine's clock, counted from elsewhere: a program's own, that knows nothing of the machine's
 * scale. */
MusterClock *muster_shifted_clock_new (gint64 first_us);

G_END_DECLS
