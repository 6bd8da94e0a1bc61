// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/report.h"

G_BEGIN_DECLS

/* Writes the report's timeline to options->trace, if that is given: the Chrome trace format. A
 * trace that can't be written is a warning. */
void muster_cli_write_trace (const MusterCliResult *self, const char *command);

G_END_DECLS
