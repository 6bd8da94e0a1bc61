// SPDX-License-Identifier: Apache-2.0
/* Runs that are refused memory which others use. One that has changed nothing yet may be made again
 * as if it hadn't begun. One that has would be torn: it waits where it is. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory_account.h"
#include "engine/run/plan.h"
#include "engine/run/slots.h"

/* How long a run waits for memory, and how long if what is in use doesn't change meanwhile: nobody
 * is about to release any. */
#define LONGEST_US   (30 * MUSTER_SECOND)
#define UNCHANGED_US MUSTER_SECOND
#define PAUSE_US     (20 * MUSTER_MILLISECOND)

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

static gboolean
acts (const MusterOp *op)
{
  return (op->flags & MUSTER_OP_STATEFUL) != 0 && !only_reads (op->name);
}

/* The node that has failed may have changed something as well. */
static gboolean
has_begun (const MusterRun *self, guint32 position)
{
  return self->done != NULL ? self->done[position] != MUSTER_NODE_LEFT : position < self->next;
}

static gboolean
has_acted (const MusterRun *self)
{
  const MusterPlan *plan = self->plan;

  for (guint32 i = 0; i < plan->n_nodes; i++)
    if (has_begun (self, i) && acts (plan->nodes[i].op))
      return TRUE;
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

/* With what others hold, which they may release. */
static gboolean
may_fit (const MusterRun *self)
{
  const gsize refused = muster_memory_refused_here ();
  return refused > 0 && held_bytes (self) <= muster_memory_limit () - refused;
}

void
muster_run_note_refusal (const MusterRun *self)
{
  if (muster_memory_refused_here () > 0 && (has_acted (self) || !may_fit (self)))
    muster_memory_forget_refused ();
}

/* It has changed nothing, and its inputs are still there: the first wasn't taken over. */
static gboolean
may_compute_again (const MusterKernel *k)
{
  const MusterPlanNode *node = k->node;
  return (node->op->flags & MUSTER_OP_STATEFUL) == 0 && !k->is_suspended &&
         (node->n_inputs == 0 || muster_kernel_input_slot (k, 0)->kind != MUSTER_SLOT_EMPTY);
}

/* FALSE if there is nothing to wait for any more. */
static gboolean
pause_run (MusterRun *self, MusterMemoryWait *wait)
{
  MusterClock *clock = muster_system_clock ();
  const gint64 now_us = muster_clock_now_us (clock);
  const guint64 used = muster_memory_used_in_all ();

  if (wait->give_up_us == 0)
    wait->give_up_us = MIN (self->context.deadline_us, muster_deadline_after (now_us, LONGEST_US));
  if (wait->changed_us == 0 || used != wait->used)
    wait->changed_us = now_us;
  wait->used = used;
  return now_us < wait->give_up_us && now_us - wait->changed_us < UNCHANGED_US &&
         muster_run_stop_reason (self) == MUSTER_STOP_NONE &&
         muster_clock_wait_until (clock, now_us + PAUSE_US, self->context.cancellable, NULL);
}

gboolean
muster_run_await_memory (MusterKernel *k, MusterMemoryWait *wait, GError **error)
{
  MusterRun *run = k->run;

  if (!muster_error_is (*error, MUSTER_ERROR_RESOURCE_EXHAUSTED) || !may_fit (run) ||
      !may_compute_again (k) || !has_acted (run) || !pause_run (run, wait))
    return FALSE;
  muster_memory_forget_refused ();
  muster_budget_clear (&k->budget);
  k->budget = (MusterBudget){.limit = run->context.max_op_bytes};
  g_clear_error (error);
  return TRUE;
}
