// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Registers all of the engine's ops, once in a process. Any thread. */
void muster_op_tables_register (void);

G_END_DECLS
