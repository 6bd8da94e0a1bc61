// SPDX-License-Identifier: Apache-2.0
/* Runs that are refused memory which others use. One that has changed nothing yet may be made again
 * as if it hadn't begun, but for generators with a seed: they draw their next numbers. One that has
 * would be torn: it waits where it is. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory_account_private.h"
#include "engine/run/parallel.h"
#include "engine/run/plan.h"
#include "engine/run/slots.h"
#include "graph/buffer_pool_private.h"

/* How long a run waits for memory in all, and how long if what is in use doesn't change meanwhile:
 * nobody is about to release any. */
#define LONGEST_US   (30 * MUSTER_SECOND)
#define UNCHANGED_US (5 * MUSTER_SECOND)
#define PAUSE_US     (20 * MUSTER_MILLISECOND)

static MusterClock *test_clock; /* atomic (nullable) */

void
muster_run_wait_by_clock (MusterClock *clock)
{
  __atomic_store_n (&test_clock, clock, __ATOMIC_RELEASE);
}

static MusterClock *
wait_clock (void)
{
  MusterClock *clock = __atomic_load_n (&test_clock, __ATOMIC_ACQUIRE);
  return clock != NULL ? clock : muster_system_clock ();
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
    if (has_begun (self, i) && muster_op_acts (plan->nodes[i].op))
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
may_fit (const MusterRun *self, gsize n_bytes)
{
  return held_bytes (self) + n_bytes <= muster_memory_limit ();
}

void
muster_run_note_refusal (const MusterRun *self)
{
  const gsize refused = muster_memory_refused_here ();
  if (refused > 0 && (has_acted (self) || !may_fit (self, refused)))
    muster_memory_forget_refused ();
}

/* It has changed nothing, and its inputs are still there: none was taken over. */
static gboolean
may_compute_again (const MusterKernel *k)
{
  for (guint32 i = 0; i < k->node->n_inputs; i++)
    if (muster_kernel_input_slot (k, (int)i)->kind == MUSTER_SLOT_EMPTY)
      return FALSE;
  return !muster_op_acts (k->node->op) && !k->is_suspended;
}

/* Frees what a failed try holds, and returns how much that was. Its random numbers stay: the next
 * try draws the same ones. */
static gsize
drop_try (MusterKernel *k)
{
  const gsize before = held_bytes (k->run) + k->budget.counted;
  for (guint32 i = 0; i < k->node->n_outputs; i++)
    muster_slot_clear (muster_kernel_output_slot (k, (int)i));
  muster_budget_clear (&k->budget);
  k->budget = (MusterBudget){.limit = k->run->context.max_op_bytes};
  return before - held_bytes (k->run);
}

/* The thread needs no processor meanwhile. A step that may go on without its client also waits on,
 * so the cancellable doesn't end a pause. */
static void
pause_run (MusterRun *self)
{
  MusterClock *clock = wait_clock ();
  const gint64 now_us = muster_clock_now_us (clock);
  const gboolean is_counted = self->done == NULL;
  if (is_counted)
    muster_parallel_leave ();
  (void)muster_clock_wait_until (clock, now_us + PAUSE_US, NULL, NULL);
  if (is_counted)
    muster_parallel_enter ();
}

/* What has passed since the last call, or since the node began to wait, is counted. */
static void
count_wait (MusterRun *self, gconstpointer node)
{
  MusterMemoryWait *wait = &self->wait;
  const gint64 now_us = muster_clock_now_us (wait_clock ());
  const guint64 used = muster_memory_used_in_all ();
  const gint64 passed_us = wait->node == node ? now_us - wait->paused_us : 0;
  wait->us += passed_us;
  wait->unchanged_us =
      wait->node == node && used == wait->used ? wait->unchanged_us + passed_us : 0;
  wait->node = node;
  wait->used = used;
  wait->paused_us = now_us;
}

/* Kept buffers are freed before bytes are refused. */
static gboolean
is_there (gsize n_bytes)
{
  const gsize left = muster_memory_left ();
  return left >= n_bytes || n_bytes - left <= muster_buffer_pool_size ();
}

/* FALSE if there is nothing to wait for any more, or the run was stopped. */
static gboolean
await_bytes (MusterKernel *k, gsize n_bytes)
{
  MusterRun *self = k->run;
  count_wait (self, k->node);
  do {
    if (muster_run_is_stopped (self) || self->wait.us >= LONGEST_US ||
        self->wait.unchanged_us >= UNCHANGED_US)
      return FALSE;
    pause_run (self);
    count_wait (self, k->node);
  } while (!is_there (n_bytes));
  return TRUE;
}

gboolean
muster_run_await_memory (MusterKernel *k, GError **error)
{
  MusterRun *run = k->run;
  const gsize refused = muster_memory_refused_here ();
  if (refused == 0 || !muster_error_is (*error, MUSTER_ERROR_RESOURCE_EXHAUSTED) ||
      !may_compute_again (k) || !has_acted (run))
    return FALSE;
  /* Its temporaries are freed already, and taken again by the next try. */
  const gsize tried = k->budget.taken;
  const gsize wanted = MAX (refused + drop_try (k), tried);
  if (!may_fit (run, wanted) || !await_bytes (k, wanted))
    return FALSE;
  muster_memory_forget_refused ();
  g_clear_error (error);
  return TRUE;
}
