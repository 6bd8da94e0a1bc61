// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* How long a task that is held waits until it trains on, unless its options say otherwise. */
#define MUSTER_HOLD_US (60 * MUSTER_SECOND)

/* Call the hook's functions, any of which may be missing. */
void muster_hook_measure (MusterHook *self, MusterGoodputMeter *meter);
gboolean muster_hook_begin (MusterHook *self, MusterScaffold *scaffold, GError **error);
gboolean muster_hook_after_create_session (MusterHook *self, MusterSession *session,
                                           MusterCoordinator *coordinator, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error);
gboolean muster_hook_before_run (MusterHook *self, MusterRunContext *context, GError **error);
gboolean muster_hook_after_run (MusterHook *self, MusterRunContext *context, GError **error);
gboolean muster_hook_end (MusterHook *self, MusterSession *session, gint64 deadline_us,
                          GCancellable *cancellable, GError **error);
void muster_hook_on_error (MusterHook *self, const GError *error);
void muster_hook_session_lost (MusterHook *self);
/* INVALID_ARGUMENT if two hooks claim the same. */
gboolean muster_hooks_check (GPtrArray *hooks, GError **error);

G_END_DECLS
