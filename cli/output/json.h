// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "status/json.h"

G_BEGIN_DECLS

/* Ends the object and prints it to stdout, as a line. */
void muster_json_print_line (JsonBuilder *builder);

G_END_DECLS
