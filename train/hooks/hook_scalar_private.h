// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/event_writer.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* A hook that writes a tensor of one number to the event file, under the name of its op, as
 * TensorFlow's graphs call a loss's summary. Without a writer it does nothing. */

MusterHook *muster_scalar_hook_new (const char *tensor);

/* Of another hook it does nothing. One of the two intervals is 0. FALSE with an error. */
gboolean muster_scalar_hook_set_writer (MusterHook *hook, MusterEventWriter *writer,
                                        gint64 every_us, gint64 every_steps, MusterClock *clock,
                                        GError **error);

G_END_DECLS
