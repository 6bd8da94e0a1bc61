// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What of a session's ConfigProto the engine goes by. */
typedef struct {
  gboolean allow_soft_placement;  /* a node that wants another device runs on ours */
  gboolean isolate_session_state; /* its variables are its own */
} MusterSessionConfig;

/* Reads a serialised ConfigProto. NULL: a program of muster's own that has none, which leaves it to
 * the engine where to place what it runs. INVALID_ARGUMENT for what the engine can't do, rather
 * than to do something else; what makes no difference to it is left aside, and told as an "info"
 * message. */
gboolean muster_session_config_read (GBytes *config, MusterSessionConfig *read, GError **error);

G_END_DECLS
