// SPDX-License-Identifier: Apache-2.0
#include "cli/output/json.h"

#include "cli/output/sanitise.h"

void
muster_json_print_line (JsonBuilder *builder)
{
  g_autofree char *line = muster_json_end (builder);
  printf ("%s\n", line);
  (void)muster_cli_flush (stdout);
}
