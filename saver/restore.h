// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* What surrounds a restore; muster_saver_restore () is in saver/saver.h. */

/* Whether a directory has a checkpoint with all of its data, as far as can be told without reading
 * that, among those that a restore with these options (nullable) would try. */
gboolean muster_saver_has_whole_checkpoint (MusterSaver *self, const char *directory,
                                            const MusterRestoreOptions *options, gboolean *found,
                                            GError **error);

/* A life that began with a checkpoint (count_deaths) and ends without either of these was a death.
 * What failed to be noted is an error; without a life there is nothing to do. */
gboolean muster_saver_mark_good (MusterSaver *self, GError **error); /* it is good: no deaths */
gboolean muster_saver_clear_crash_loop (MusterSaver *self,
                                        GError **error); /* its end says nothing of it */

G_END_DECLS
