// SPDX-License-Identifier: Apache-2.0
/* Whether a run that was refused memory may be made again as if it hadn't begun. */
#include "base/memory_account.h"
#include "engine/run/plan.h"
#include "engine/run/slots.h"

/* The ops that are always computed but leave nothing behind, by the beginnings of their names. */
static gboolean
only_reads (const char *op)
{
  static const char *const readers[] = {"Variable",
                                        "VarHandleOp",
                                        "ReadVariableOp",
                                        "VarIsInitializedOp",
                                        "IsVariableInit",
                                        "ResourceGather",
                                        "HashTable",
                                        "MutableHashTable",
                                        "MutableDenseHash",
                                        "LookupTableFind",
                                        "LookupTableSize",
                                        "LookupTableExport",
                                        "Random",
                                        "TruncatedNormal",
                                        "Multinomial",
                                        "UniformCandidate",
                                        "LogUniformCandid",
                                        "FixedUnigramCandi",
                                        "AllCandidate",
                                        "GuaranteeConst",
                                        "DisableCopyOnRead",
                                        "Restore",
                                        "Assert",
                                        "Print",
                                        "Timestamp"};

  for (gsize i = 0; i < G_N_ELEMENTS (readers); i++)
    if (g_str_has_prefix (op, readers[i]))
      return TRUE;
  return FALSE;
}

/* The node that failed isn't done: an op that is refused memory changes nothing. */
static gboolean
is_done (const MusterRun *self, guint32 position)
{
  return self->done != NULL ? self->done[position] == MUSTER_NODE_DONE : position + 1 < self->next;
}

static gboolean
has_acted (const MusterRun *self)
{
  const MusterPlan *plan = self->plan;

  for (guint32 i = 0; i < plan->n_nodes; i++) {
    const MusterOp *op = plan->nodes[i].op;
    if (is_done (self, i) && (op->flags & MUSTER_OP_STATEFUL) != 0 && !only_reads (op->name))
      return TRUE;
  }
  return FALSE;
}

/* What the run's slots hold. Several may have one buffer; strings have none. */
static gsize
held_bytes (const MusterRun *self)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  gsize n_bytes = 0;

  for (guint32 i = 0; i < self->plan->n_slots; i++) {
    const MusterSlot *slot = &self->slots[i];
    if (slot->kind != MUSTER_SLOT_TENSOR)
      continue;
    const void *data = muster_tensor_data (slot->value);
    if (g_hash_table_add (seen, (gpointer)(data != NULL ? data : slot->value)))
      n_bytes += muster_tensor_n_stored (slot->value);
  }
  return n_bytes;
}

void
muster_run_note_refusal (const MusterRun *self)
{
  const gsize refused = muster_memory_refused_here ();

  if (refused > 0 && (has_acted (self) || held_bytes (self) > muster_memory_limit () - refused))
    muster_memory_forget_refused ();
}
