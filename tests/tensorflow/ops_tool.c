// SPDX-License-Identifier: Apache-2.0
/* Prints what the engine has: a line for each op, its name, its attributes
 * and whether it "acts", "reads" or only computes (""). With arguments, each an
 * op and an attribute, OP:NAME: those that it hasn't. */
#include "engine/run/registry.h"
#include "engine/session/op_tables.h"

#include <stdio.h>

static void
print_ops (void)
{
  g_autoptr (GPtrArray) names = muster_op_names ();
  for (guint i = 0; i < names->len; i++) {
    const char *name = g_ptr_array_index (names, i);
    const MusterOp *op = muster_op_find_entry (name)->op;
    const char *effect = (op->flags & MUSTER_OP_READER) != 0 ? "reads" : "";
    printf ("%s\t%s\t%s\n", name, op->attributes, muster_op_acts (op) ? "acts" : effect);
  }
}

static void
print_lacking (const char *given)
{
  g_auto (GStrv) parts = g_strsplit (given, ":", 2);
  const MusterOpEntry *entry = muster_op_find_entry (parts[0]);
  if (entry == NULL || !muster_signature_has (entry->signature, parts[1]))
    printf ("%s\n", given);
}

int
main (int argc, char **argv)
{
  muster_op_tables_register ();
  if (argc == 1)
    print_ops ();
  for (int i = 1; i < argc; i++)
    print_lacking (argv[i]);
  return 0;
}
