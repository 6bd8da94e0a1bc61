// SPDX-License-Identifier: Apache-2.0
/* Prints what the engine has: a line for each op, its name and what its type attributes may be. */
#include "engine/run/registry.h"
#include "engine/session/op_tables.h"

#include <stdio.h>

int
main (void)
{
  muster_op_tables_register ();
  g_autoptr (GPtrArray) names = muster_op_names ();
  for (guint i = 0; i < names->len; i++) {
    const char *name = g_ptr_array_index (names, i);
    printf ("%s\t%s\n", name, muster_op_find_entry (name)->op->constraints);
  }
  return 0;
}
