// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* Checks that the devices that save see the chief's directory, with a few bytes before many are
 * written (docs/decisions/0010), once for each session and directory. The chief writes a small
 * checkpoint `.probe-RANDOM` there, and every device with a SaveV2 node behind the saver's save op
 * reads it through its own RestoreV2 node, added to the session under `muster_probe/`. The files
 * are always removed afterwards.
 *
 * FAILED_PRECONDITION names each device that doesn't see the files, and the directory. Succeeds
 * without a check if the master doesn't support it (such as one without extend), and with no_probe.
 * A master that doesn't answer fails with its own error. Other steps of the session continue. Any
 * thread. */
gboolean muster_saver_probe_once (MusterSaver *self, MusterSession *session, const char *directory,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS
