// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* Whether the devices that save see the chief's directory, asked with a few bytes before many are
 * written (docs/decisions/0010). The chief writes a small checkpoint ".probe-RANDOM" there, and
 * every device that has a SaveV2 node behind the saver's save op reads it through a RestoreV2 node
 * of its own, added to the session below "muster_probe/". In any case the files are taken away
 * afterwards.
 *
 * FAILED_PRECONDITION names each device that doesn't see them, and the directory. A master that
 * can't be asked (one without extend, say) tells nothing, and that is success; one that doesn't
 * answer fails with its own error. The session's other steps go on meanwhile. Any thread. */
gboolean muster_saver_probe (MusterSaver *self, MusterSession *session, const char *directory,
                             gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS
