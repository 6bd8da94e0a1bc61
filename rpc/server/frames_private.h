// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterFrames follows the HTTP/2 frames that a client sends, and says when it asks for more than
 * any client needs: gRPC 1.51 bounds neither the headers of a call nor calls that are taken back,
 * nor those of a client that never acknowledges the settings. It looks at the frames' heads only. A
 * connection that doesn't begin as HTTP/2 isn't followed. One thread at a time for each. */

typedef struct _MusterFrames MusterFrames;

/* Sets the limits, which are the process's, as a socket doesn't know which server it is of: of
 * calls of a client before it acknowledges the settings, and of calls of one connection whose
 * request hasn't ended. The higher ones of these and those before: a process may have several
 * servers. */
void muster_frames_allow (guint max_unsettled_calls, guint max_unended_calls);

MusterFrames *muster_frames_new (void);
void muster_frames_free (MusterFrames *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterFrames, muster_frames_free)

/* Until TRUE is given, after FALSE: nothing was sent to the client, so it can't acknowledge any
 * settings yet. gRPC takes that for the acknowledgement of none. */
void muster_frames_has_answered (MusterFrames *self, gboolean has_answered);

/* Follows what was received. NULL, or why the connection should be ended (static). */
const char *muster_frames_read (MusterFrames *self, const guint8 *data, gsize size);

G_END_DECLS
