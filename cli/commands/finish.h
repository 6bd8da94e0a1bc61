// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"

G_BEGIN_DECLS

/* Announces to the master that the job of options->model is over, whoever its chief is; waiting and
 * later tasks exit at once. step below 0: the last that was announced or saved. Prints the result.
 */
gboolean muster_cli_end_job (MusterSession *session, const MusterCliOptions *options, gint64 step,
                             gint64 deadline_us, GError **error);

G_END_DECLS
