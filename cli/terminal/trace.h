// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/report.h"

G_BEGIN_DECLS

/* Writes the report's timeline to options->trace, if given, in Chrome's trace format. Failing to
 * write gives a warning. */
void muster_cli_write_trace (const MusterCliResult *self, const char *command);

G_END_DECLS
