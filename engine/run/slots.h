// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget_private.h"
#include "engine/run/philox.h"
#include "engine/run/types.h"

G_BEGIN_DECLS

/* The structs of a run, for the executor and for ops that work on slots. */

enum {
  MUSTER_SLOT_EMPTY,
  MUSTER_SLOT_TENSOR,   /* a MusterTensor */
  MUSTER_SLOT_REF,      /* a MusterVariable, read by the kernel that uses it */
  MUSTER_SLOT_RESOURCE, /* a MusterVariable behind a handle */
  MUSTER_SLOT_HANDLE,   /* a MusterResource behind a handle, of either generation */
  MUSTER_SLOT_HANDLES,  /* a MusterTensor of int64: numbers of the run's handles */
  MUSTER_SLOT_DEAD,     /* no value, from the branch that a Switch didn't take */
};

typedef struct {
  gpointer value; /* (owned) (nullable) */
  guint kind;
} MusterSlot;

struct _MusterKernel {
  MusterRun *run;             /* (not owned) */
  const MusterPlanNode *node; /* (not owned) */
  guint32 position;           /* of node in the plan */
  MusterTensor **inputs;      /* values; NULL for references and handles; owned by slots or held */
  MusterTensor **held;        /* (owned) values read from references, until the kernel ends */
  guint32 n_held;
  MusterBudget budget; /* of this run of the node */
  MusterPhilox random; /* this kernel's generator, if has_random */
  gboolean has_random;
  gint64 started_us;     /* in a traced step */
  gboolean is_suspended; /* guarded by the run's lock from here, once it waits */
  gboolean is_resumed;
  gboolean cancel_called;
  MusterKernelCancel cancel;
  MusterKernelFinish finish; /* (nullable) */
  gpointer cancel_data;      /* argument of both */
  GError *resume_error;      /* (owned) (nullable) */
};

enum { MUSTER_NODE_LEFT, MUSTER_NODE_DONE, MUSTER_NODE_WAITS };

/* A run's waits for memory. */
typedef struct {
  gconstpointer node;  /* (nullable) the last one that waited */
  gint64 us;           /* of all waits, with the tries between them */
  gint64 paused_us;    /* when the last pause ended */
  guint64 used;        /* bytes in use, as they last changed, */
  gint64 unchanged_us; /* and for how long they haven't */
} MusterMemoryWait;

struct _MusterRun {
  MusterPlan *plan; /* (owned) while it runs */
  MusterRunContext context;
  MusterSlot *slots;    /* (owned) the plan's n_slots */
  GArray *handles;      /* (owned) (nullable) of MusterSlot, RESOURCE or HANDLE: those that are
                           elements of tensors */
  MusterKernel *kernel; /* (owned) of the node being run; NULL: no memory for one, it has failed */
  guint8 *dead;         /* (owned) (nullable) by position, where the plan has a Switch */
  guint32 next;         /* position of the next node, while none waits */
  gboolean values_changed;
  gsize n_counted;      /* bytes of this memory, in the process's, without those of: */
  gsize n_suspended;    /* the kernels that took the place of suspended ones */
  GError *error;        /* (owned) (nullable) the first */
  gint stop;            /* atomic: MusterStop */
  gboolean has_written; /* once it was to stop: one of its ops has left something behind */
  gint64 end_by_us;     /* atomic: until when it goes on nevertheless; 0: it wasn't to stop */
  MusterMemoryWait wait;

  GMutex lock;
  GCond changed;        /* signalled when a kernel is resumed or the run is stopped */
  gboolean has_changed; /* guarded by lock */
  GPtrArray *suspended; /* (owned) (nullable) of MusterKernel: every one suspended in this run;
                           guarded by lock */
  guint n_waiting;      /* number of suspended kernels that haven't ended */
  guint8 *done; /* (owned) (nullable) MUSTER_NODE_… by position, once a kernel was suspended */
  GCancellable *own_cancellable; /* (owned) (nullable) for kernels; guarded by lock */
  gulong forward_id;             /* handler on context.cancellable that cancels own_cancellable */
};

void muster_slot_clear (MusterSlot *slot);
/* The value of a handle of the first generation of ops: container and name (transfer full). */
MusterTensor *muster_slot_handle_text (const MusterSlot *slot);

static inline MusterSlot *
muster_kernel_input_slot (const MusterKernel *k, int i)
{
  const MusterPlanInput *input = &k->run->plan->inputs[k->node->first_input + (guint32)i];
  return &k->run->slots[input->slot];
}

/* The same; of a tensor of handles the first one, as TensorFlow's kernels take it; NULL: it is
 * empty, or the element is none. */
const MusterSlot *muster_kernel_input_handle (const MusterKernel *k, int i);

static inline MusterSlot *
muster_kernel_output_slot (const MusterKernel *k, int i)
{
  return &k->run->slots[k->node->first_output + (guint32)i];
}

/* Checked between nodes: TRUE if the run has failed or must stop, which becomes its error. */
gboolean muster_run_is_stopped (MusterRun *self);
/* TRUE if it is to stop, also if it could go on for a while: for a kernel that was cancelled. */
gboolean muster_run_was_stopped (MusterRun *self);
MusterStop muster_run_stop_reason (MusterRun *self);
/* Notes when it was to stop, unless that is known. */
void muster_run_begin_end (MusterRun *self);
/* A scalar that stands for the handle in a slot (RESOURCE or HANDLE), as an element. */
MusterTensor *muster_run_number_handle (MusterRun *self, const MusterSlot *slot);
/* Wakes the thread that executes the run; with its lock held. */
void muster_run_notify (MusterRun *self);

/* TRUE, after a pause and with *error cleared, if a kernel that has failed is to compute again: it
 * was refused memory that others use, and its run has changed something that nothing can undo. If
 * the run was stopped meanwhile, that becomes its error. */
gboolean muster_run_await_memory (MusterKernel *k, GError **error);
/* For tests: by which clock it waits; NULL: the machine's. */
void muster_run_wait_by_clock (MusterClock *clock);

/* After a failure: forgets that this thread was refused memory (base/memory_account_private.h) if
 * the run has left something behind, or needs more than there is without others. */
void muster_run_note_refusal (const MusterRun *self);

/* For freeing a plan; self may be NULL. */
void muster_run_free_scratch (MusterRun *self);

/* --- executor.c runs nodes in order; suspended.c takes over once a kernel was suspended --- */

MusterKernel *muster_kernel_new (MusterRun *run, guint32 max_inputs);
gsize muster_kernel_size (guint32 max_inputs);
/* Ends a kernel that has returned or was resumed. error: (transfer full) (nullable) of the
 * kernel. */
gboolean muster_kernel_finish (MusterKernel *k, gboolean ok, GError *error);
/* Runs the node at that position. TRUE if it is done or suspended, FALSE on failure. */
gboolean muster_run_node (MusterRun *self, guint32 position);

/* Adds a kernel to the suspended ones and gives the run a new one. From then on, the run records
 * which nodes are done. */
void muster_run_suspend (MusterRun *self, MusterKernel *k);
/* Runs the remaining nodes of such a run. */
void muster_run_finish_suspended (MusterRun *self);
void muster_run_drop_suspended (MusterRun *self);

G_END_DECLS
