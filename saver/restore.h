// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* Functions for use before and after a restore; muster_saver_restore () is in saver/saver.h. */

/* Sets *found to TRUE if the directory has a checkpoint whose data files are all there, without
 * reading them, among those that a restore with these options (nullable) would try. */
gboolean muster_saver_has_whole_checkpoint (MusterSaver *self, const char *directory,
                                            const MusterRestoreOptions *options, gboolean *found,
                                            GError **error);

/* With count_deaths, a run that restored a checkpoint and ends without calling either of these
 * counts as a death. They fail if the record can't be written, and do nothing if there is no such
 * run. */
gboolean muster_saver_mark_good (MusterSaver *self,
                                 GError **error); /* the checkpoint is good: no deaths */
gboolean muster_saver_clear_crash_loop (MusterSaver *self,
                                        GError **error); /* the run ends for another reason */

G_END_DECLS
