// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/probe.h"

G_BEGIN_DECLS

/* What a probe puts into a directory, for as long as it takes: ".probe-KEY.index" and its data. */
#define MUSTER_PROBE_PREFIX  ".probe-"
#define MUSTER_PROBE_KEY_LEN 32 /* hexadecimal digits */

/* What a saver remembers of its probes. */
typedef struct _MusterProbe MusterProbe;

MusterProbe *muster_probe_new (void);
void muster_probe_free (MusterProbe *self);

/* Before a save: muster_saver_probe (), unless this session has been found to see the directory or
 * the master is in this process. */
gboolean muster_saver_probe_once (MusterSaver *self, MusterSession *session, const char *directory,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS
