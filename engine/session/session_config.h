// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The fields of a session's ConfigProto that the engine uses. */
typedef struct {
  gboolean allow_soft_placement;  /* place nodes for other devices on this one */
  gboolean isolate_session_state; /* its variables aren't shared */
} MusterSessionConfig;

/* Reads a serialised ConfigProto. NULL, as from muster's own programs, lets the engine place
 * everything. INVALID_ARGUMENT for settings that the engine doesn't support; settings without an
 * effect are ignored, with an "info" message. */
gboolean muster_session_config_read (GBytes *config, MusterSessionConfig *read, GError **error);

G_END_DECLS
