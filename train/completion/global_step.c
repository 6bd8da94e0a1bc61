// SPDX-License-Identifier: Apache-2.0
#include "train/completion/global_step_private.h"

#include <string.h>

const MusterVariableInfo *
muster_global_step_of (MusterMetaGraph *meta_graph)
{
  const char *item = muster_meta_graph_op (meta_graph, "global_step");
  const char *wanted = item != NULL ? item : "global_step";
  const gsize length = strcspn (wanted, ":");
  gsize n;
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta_graph, &n);
  for (gsize i = 0; i < n; i++)
    if (strncmp (variables[i].name, wanted, length) == 0 && variables[i].name[length] == '\0')
      return &variables[i];
  return NULL;
}
