// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/data_flow/queue.h"
#include "tests/engine/fixture.h"

/* A queue of floats "q" with an op of each kind around it, in one generation of ops. "x" is fed to
 * "put" and "put_many" (which takes it as a vector), "n" to "take_many" and "up_to". */
typedef struct {
  const char *op; /* "FIFOQueue" */
  gint64 capacity;
  gint64 min_after_dequeue;
  gint64 seed, seed2;
  gboolean is_old;
  gboolean is_shapeless;
  const char *shared_name; /* (nullable) */
} Wanted;

static inline void
add_op (MusterGraphBuilder *b, const Wanted *wanted, const char *op, const char *name)
{
  g_autofree char *full = g_strconcat (op, wanted->is_old ? "" : "V2", NULL);
  muster_graph_builder_node (b, full, name);
  if (!g_str_equal (name, "q"))
    muster_graph_builder_input (b, "q");
}

static inline void
add_put (MusterGraphBuilder *b, const Wanted *wanted, const char *op, const char *name)
{
  add_op (b, wanted, op, name);
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_types (b, "Tcomponents", (MusterDType[]){MUSTER_FLOAT}, 1);
}

static inline void
add_take (MusterGraphBuilder *b, const Wanted *wanted, const char *op, const char *name,
          const char *n)
{
  add_op (b, wanted, op, name);
  if (n != NULL)
    muster_graph_builder_input (b, n);
  muster_graph_builder_attr_types (b, "component_types", (MusterDType[]){MUSTER_FLOAT}, 1);
}

static inline void
add_queue (MusterGraphBuilder *b, const Wanted *wanted)
{
  add_op (b, wanted, wanted->op, "q");
  muster_graph_builder_attr_types (b, "component_types", (MusterDType[]){MUSTER_FLOAT}, 1);
  if (!wanted->is_shapeless)
    muster_graph_builder_attr_shapes (b, "shapes", 1, 0, NULL);
  muster_graph_builder_attr_int (b, "capacity", wanted->capacity);
  if (strstr (wanted->op, "Shuffle") != NULL) {
    muster_graph_builder_attr_int (b, "min_after_dequeue", wanted->min_after_dequeue);
    muster_graph_builder_attr_int (b, "seed", wanted->seed);
    muster_graph_builder_attr_int (b, "seed2", wanted->seed2);
  }
  muster_graph_builder_attr_string (b, "container", "");
  muster_graph_builder_attr_string (b, "shared_name",
                                    wanted->shared_name != NULL ? wanted->shared_name : "");
}

static inline MusterSession *
open_queue (MusterMaster *master, const Wanted *wanted)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, -1, NULL);
  muster_graph_builder_placeholder (b, "n", MUSTER_INT32, 0, NULL);
  add_queue (b, wanted);
  add_put (b, wanted, "QueueEnqueue", "put");
  add_put (b, wanted, "QueueEnqueueMany", "put_many");
  add_take (b, wanted, "QueueDequeue", "take", NULL);
  add_take (b, wanted, "QueueDequeueMany", "take_many", "n");
  add_take (b, wanted, "QueueDequeueUpTo", "up_to", "n");
  add_op (b, wanted, "QueueSize", "size");
  add_op (b, wanted, "QueueIsClosed", "is_closed");
  add_op (b, wanted, "QueueClose", "close");
  add_op (b, wanted, "QueueClose", "close_now");
  muster_graph_builder_attr_bool (b, "cancel_pending_enqueues", TRUE);
  return open_session (master, b);
}

/* One step, on a thread of its own where it may wait. */
typedef struct {
  MusterSession *session;
  const char *op;
  const float *put; /* (nullable) */
  int n_put;        /* 0: a scalar */
  int n;            /* how many to take */
  gint64 deadline_us;
  MusterTensor *got; /* (owned) (nullable) */
  GError *error;     /* (owned) (nullable) */
  GThread *thread;   /* (owned) (nullable) */
} Step;

static inline gpointer
run_step (gpointer data)
{
  Step *step = data;
  g_autoptr (MusterTensor) x = NULL;
  g_autoptr (MusterTensor) n = muster_tensor_new_int32 (step->n);
  const gboolean fetches = step->op[0] != 'p' && step->op[0] != 'c';
  if (step->put != NULL)
    x = muster_tensor_new_from_data (MUSTER_FLOAT, step->n_put > 0, (gint64[]){step->n_put},
                                     step->put, MAX (step->n_put, 1) * sizeof (float), NULL);
  const MusterFeed feeds[] = {{step->put != NULL ? "x" : "n", step->put != NULL ? x : n}};
  const MusterStep wanted = {.feeds = feeds,
                             .n_feeds = 1,
                             .fetches = &step->op,
                             .n_fetches = fetches,
                             .targets = &step->op,
                             .n_targets = !fetches,
                             .deadline_us =
                                 step->deadline_us != 0 ? step->deadline_us : test_deadline ()};
  (void)muster_session_run (step->session, &wanted, fetches ? &step->got : NULL, NULL, NULL,
                            &step->error);
  return NULL;
}

static inline void
start (Step *step)
{
  step->thread = g_thread_new (step->op, run_step, step);
}

static inline void
join (Step *step)
{
  g_thread_join (g_steal_pointer (&step->thread));
}

static inline void
step_clear (Step *step)
{
  muster_tensor_unref (step->got);
  g_clear_error (&step->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Step, step_clear)

static inline void
put (MusterSession *session, float value)
{
  g_auto (Step) step = {.session = session, .op = "put", .put = &value};
  run_step (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
}

static inline void
put_many (MusterSession *session, const float *values, int n)
{
  g_auto (Step) step = {.session = session, .op = "put_many", .put = values, .n_put = n};
  run_step (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
}

/* What a step gave, "1 2 3", or its error. */
static inline char *
told (Step *step)
{
  if (step->error != NULL)
    return g_strndup (step->error->message, strcspn (step->error->message, "\n"));
  GString *text = g_string_new (NULL);
  for (gint64 i = 0; step->got != NULL && i < muster_tensor_n_elements (step->got); i++)
    g_string_append_printf (text, "%s%g", i > 0 ? " " : "",
                            ((const float *)muster_tensor_data (step->got))[i]);
  return g_string_free (text, FALSE);
}

static inline char *
run_told (MusterSession *session, const char *op, int n)
{
  g_auto (Step) step = {.session = session, .op = op, .n = n};
  run_step (&step);
  return told (&step);
}

#define EXPECT_GIVES(session, op, n, wanted)                                                       \
  do {                                                                                             \
    g_autofree char *told_ = run_told (session, op, n);                                            \
    MUSTER_EXPECT_STREQ (told_, wanted);                                                           \
  } while (0)

#define EXPECT_REPORTED(step, wanted)                                                              \
  do {                                                                                             \
    g_autofree char *told_ = told (step);                                                          \
    MUSTER_EXPECT_STREQ (told_, wanted);                                                           \
  } while (0)

static inline int
size_of (MusterSession *session)
{
  g_auto (Step) step = {.session = session, .op = "size"};
  run_step (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
  return step.got != NULL ? *(const gint32 *)muster_tensor_data (step.got) : -1;
}

/* Until the queue has so many: steps on other threads have come as far as they can. */
static inline void
wait_for_size (MusterSession *session, int size)
{
  const gint64 end_us = test_deadline ();
  while (size_of (session) != size && muster_clock_now_us (muster_system_clock ()) < end_us)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (size_of (session), size);
}

static inline gint64
soon (void)
{
  return test_deadline_in (5 * MUSTER_MILLISECOND);
}

static const float counted[] = {1, 2, 3, 4, 5, 6, 7, 8};
