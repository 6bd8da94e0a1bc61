// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/restore.h"

G_BEGIN_DECLS

/* So many lives running that end without a word are enough. */
#define MUSTER_CRASH_LOOP_LIMIT 3

/* Notes in the directory's side file that a life begins with a checkpoint. A life that stands there
 * and isn't this saver's own has ended without a word: its checkpoint has one death more. *deaths
 * is prefix's count; from MUSTER_CRASH_LOOP_LIMIT on no life is noted. */
gboolean muster_crash_loop_begin (MusterSaver *self, const char *directory, const char *prefix,
                                  guint *deaths, GError **error);

G_END_DECLS
