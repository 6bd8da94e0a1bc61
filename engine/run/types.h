// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "engine/resources/resources.h"
#include "engine/run/op.h"
#include "graph/graph_nodes_private.h"

G_BEGIN_DECLS

/* Types shared by the engine's files: a plan (engine/run/plan.h) and the context of a run
 * (engine/run/executor.h). Values are passed in slots: one for each feed, then one for each output
 * of each node. */

/* The one device of a master in this process. */
#define MUSTER_LOCAL_DEVICE "/job:localhost/replica:0/task:0/device:CPU:0"

typedef struct _MusterPlan MusterPlan;
typedef struct _MusterProgram MusterProgram;
typedef struct _MusterRun MusterRun;
typedef struct _MusterRandoms MusterRandoms;
typedef struct _MusterTrace MusterTrace;

typedef struct {
  guint32 slot : 30;
  guint32 is_last : 1;   /* no later node reads the slot, and it isn't fetched */
  guint32 wants_ref : 1; /* the kernel takes the variable, not its value */
} MusterPlanInput;

/* The variable or resource of a node. */
typedef struct {
  const char *container;     /* (not owned) of the plan, as is the name */
  const char *name;          /* (not owned) (nullable) of a resource without a shared name */
  guint hash;                /* muster_resources_hash () of these */
  MusterResourceCache cache; /* what was found last */
} MusterPlanResource;

typedef struct {
  const MusterNode *def; /* (not owned) of the graph */
  const MusterOp *op;    /* (not owned) */
  guint32 graph_index;
  guint32 first_input, n_inputs;     /* into inputs */
  guint32 first_output, n_outputs;   /* slots */
  guint32 first_control, n_controls; /* into controls */
  guint8 is_constant;
  guint8 is_target;   /* the step names it as one */
  guint8 is_skipped;  /* nobody needs its results, and computing them has no effect */
  guint8 value_dtype; /* the dtype required of a variable behind a resource handle; INVALID: any */
  union {
    MusterTensor *constant;       /* (owned) a Const's value */
    MusterPlanResource *resource; /* (owned) (nullable) any other node's */
  };
  MusterKernelMemo *memo; /* (owned) (nullable) atomic */
} MusterPlanNode;

typedef struct {
  guint32 slot;
  MusterDType dtype; /* of the tensor that is fed; INVALID: any */
  int n_dims;        /* of the placeholder's shape; -1: any */
  gint64 *dims;      /* (owned) (nullable) -1: any size */
} MusterPlanFeed;

typedef struct {
  guint32 slot;
  const MusterNode *def; /* whose output it is */
} MusterPlanFetch;

#define MUSTER_N_SPARES 4
#define MUSTER_NO_NODE  G_MAXUINT32

struct _MusterPlan {
  gatomicrefcount refs;
  MusterGraph *graph;    /* (owned) which nodes point into */
  guint64 hash;          /* of key */
  GBytes *key;           /* (owned) feeds, fetches and targets, by which it is looked up */
  gboolean is_kept;      /* by its program; who has another must drop it after the step */
  guint64 used;          /* guarded by the program's lock: last use */
  gsize n_bytes;         /* of its arrays, counted in the process's memory */
  MusterPlanNode *nodes; /* (owned) in execution order */
  guint32 n_nodes;
  MusterPlanInput *inputs; /* (owned) */
  guint32 *controls;       /* (owned) nodes that must have run, by position in nodes */
  guint8 *slot_dtypes;     /* (owned) */
  guint32 *slot_nodes;     /* (owned) position of the node that fills it, or MUSTER_NO_NODE */
  guint32 n_slots;
  MusterPlanFeed *feeds; /* (owned) */
  guint32 n_feeds;
  MusterPlanFetch *fetches; /* (owned) */
  guint32 n_fetches;
  GStringChunk *texts;                /* (owned) (nullable) */
  guint32 max_inputs;                 /* of one node */
  gboolean has_switch;                /* values may be dead */
  MusterRun *spares[MUSTER_N_SPARES]; /* (owned) (nullable) memory for a step; taken and returned
                                         atomically */
};

/* Why a step is stopped from outside. */
typedef enum {
  MUSTER_STOP_NONE,
  MUSTER_STOP_DEADLINE,
  MUSTER_STOP_CANCELLABLE,
  MUSTER_STOP_CLOSED,
  MUSTER_STOP_RESET,
} MusterStop;

/* The environment of a step; borrowed until the run is freed. */
typedef struct {
  MusterResources *resources;
  MusterResources *own; /* the session's */
  MusterRandoms *randoms;
  MusterStorage *storage;
  GCancellable *cancellable; /* (nullable) */
  gint64 deadline_us;        /* MUSTER_WAIT_FOREVER: none */
  gsize max_op_bytes;        /* maximum memory of one run of an op */
  MusterTrace *trace;        /* (nullable) records the nodes' durations */
} MusterRunContext;

G_END_DECLS
