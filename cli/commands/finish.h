// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"

G_BEGIN_DECLS

/* Tells the master that options->model's job is over, whoever its chief is: who waits for it, or
 * comes later, leaves at once. step below 0 is what its chief told last. Prints what was done. */
gboolean muster_cli_end_job (MusterSession *session, const MusterCliOptions *options, gint64 step,
                             gint64 deadline_us, GError **error);

G_END_DECLS
