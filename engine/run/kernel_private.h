// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/executor.h"
#include "engine/run/philox.h"

G_BEGIN_DECLS

/* A kernel's and a run's inside: for executor.c, parked.c, kernel.c and core_ops.c. */

/* Added to MusterOpFlags by the core ops: a reference goes through to the output as a reference,
 * to be read late (docs/decisions/0015). */
#define MUSTER_OP_PASSES_REF (1 << 16)
/* Gives dead outputs: steps with such a node look for dead values. */
#define MUSTER_OP_SWITCHES (1 << 17)
/* Runs as long as one input is alive, whatever its control inputs are. */
#define MUSTER_OP_MERGES (1 << 18)

typedef enum {
  MUSTER_SLOT_EMPTY,
  MUSTER_SLOT_TENSOR,   /* a MusterTensor */
  MUSTER_SLOT_REF,      /* a MusterVariable, to be read by who uses it */
  MUSTER_SLOT_RESOURCE, /* a MusterVariable behind a handle */
  MUSTER_SLOT_HANDLE,   /* a MusterResource behind a handle, of either generation */
  MUSTER_SLOT_DEAD,     /* no value, of the branch that a Switch didn't take */
} MusterSlotKind;

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
  MusterPhilox random; /* what this kernel draws from, once has_random */
  gboolean has_random;
  gint64 started_us;  /* in a traced step */
  gboolean is_parked; /* guarded by the run's lock from here, once parked */
  gboolean is_resumed;
  gboolean cancel_called;
  MusterKernelCancel cancel;
  MusterKernelFinish finish; /* (nullable) */
  gpointer cancel_data;      /* of both */
  GError *resume_error;      /* (owned) (nullable) */
};

typedef enum { MUSTER_NODE_LEFT, MUSTER_NODE_DONE, MUSTER_NODE_WAITS } MusterNodeState;

struct _MusterRun {
  MusterPlan *plan; /* (owned) while it runs */
  MusterRunContext context;
  MusterSlot *slots;    /* (owned) the plan's n_slots */
  MusterKernel *kernel; /* (owned) of the node being run */
  guint8 *dead;         /* (owned) (nullable) by position, where the plan has a Switch */
  guint32 next;         /* position of the next node, while none has parked */
  gboolean turned;
  GError *error;                        /* (owned) (nullable) the first */
  gint stop;                            /* atomic: MusterStop */
  MusterRun *list_next, *list_previous; /* guarded by the session's lock */

  GMutex lock;
  GCond news;        /* a kernel was resumed, or the run stopped */
  gboolean has_news; /* guarded by lock */
  GPtrArray *parked; /* (owned) (nullable) of MusterKernel, all that ever parked; guarded by lock */
  guint n_waiting;   /* of parked, those that the walker hasn't finished */
  guint8 *done;      /* (owned) (nullable) MusterNodeState by position, once a kernel has parked */
  GCancellable *own_cancellable; /* (owned) (nullable) for kernels; guarded by lock */
  gulong forward_id;             /* context.cancellable to own_cancellable */
};

void muster_slot_clear (MusterSlot *slot);
/* What an op of the first generation says its handle is: container and name (transfer full). */
MusterTensor *muster_slot_handle_text (const MusterSlot *slot);

static inline MusterSlot *
muster_kernel_input_slot (const MusterKernel *k, int i)
{
  const MusterPlanInput *input = &k->run->plan->inputs[k->node->first_input + (guint32)i];
  return &k->run->slots[input->slot];
}

static inline MusterSlot *
muster_kernel_output_slot (const MusterKernel *k, int i)
{
  return &k->run->slots[k->node->first_output + (guint32)i];
}

/* executor.c's, for parked.c. */
MusterKernel *muster_kernel_new (MusterRun *run, guint32 max_inputs);
gboolean muster_kernel_finish (MusterKernel *k, gboolean ok, GError *error);
gboolean muster_run_node (MusterRun *self, guint32 position);
/* Looked at between nodes: TRUE if the run has failed or is to stop, which is then its error. */
gboolean muster_run_is_stopped (MusterRun *self);
MusterStop muster_run_why_stop (MusterRun *self);

/* parked.c's, for executor.c: takes a kernel that has parked out of the walk; goes on from there
 * until the run is over; frees what that needed. */
void muster_run_put_aside (MusterRun *self, MusterKernel *k);
void muster_run_finish_parked (MusterRun *self);
void muster_run_drop_parked (MusterRun *self);

/* Takes what the node's generator gives for a number of outputs, as TensorFlow's kernels do, or so
 * many times four words. */
MusterPhilox muster_randoms_take (MusterRandoms *self, const MusterPlanNode *node, guint64 n);
MusterPhilox muster_randoms_take_blocks (MusterRandoms *self, const MusterPlanNode *node,
                                         guint64 n_blocks);

G_END_DECLS
