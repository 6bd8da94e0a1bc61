// SPDX-License-Identifier: Apache-2.0
// The process's limit of memory, as the engine keeps it.
#include "base/memory_account_private.h"
#include "engine/resources/lookup_dense.h"
#include "engine/resources/lookup_store.h"
#include "engine/run/parallel.h"
#include "engine/run/registry.h"
#include "engine/run/slots.h"
#include "engine/session/op_tables.h"
#include "graph/buffer_pool_private.h"
#include "tests/doubles/fake_clock.h"
#include "tests/engine/fixture.h"

#define MIB ((gsize)1 << 20)

/* From here on that much more may be held. */
static void
limit_to (gsize more)
{
  muster_buffer_pool_empty (); /* else it makes room for more */
  muster_memory_set_limit (muster_memory_used_in_all () + more);
}

static void
clear_limit (void)
{
  muster_memory_set_limit (0);
}

static void
add_int (MusterGraphBuilder *b, const char *name, gint32 value)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_int32 (value);
  muster_graph_builder_constant (b, name, tensor);
}

static void
add_one_hot (MusterGraphBuilder *b, const char *name, const char *depth)
{
  muster_graph_builder_node (b, "OneHot", name);
  muster_graph_builder_input (b, "one_int");
  muster_graph_builder_input (b, depth);
  muster_graph_builder_input (b, "one");
  muster_graph_builder_input (b, "one");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "TI", MUSTER_INT32);
}

/* A few hundred bytes ask for 8.6 GB. */
MUSTER_TEST (MemoryLimit, refuses_a_one_hot_of_a_depth_of_two_billion)
{
  g_autoptr (MusterMaster) master = muster_local_master_new_with (NULL, (guint64)1 << 40);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_int (b, "one_int", 1);
  add_int (b, "deep", G_MAXINT32);
  add_int (b, "shallow", 1000);
  add_constant (b, "one", 1);
  add_one_hot (b, "huge", "deep");
  add_one_hot (b, "small", "shallow");
  g_autoptr (MusterSession) session = open_session (master, b);
  const guint64 refused = muster_memory_n_refused ();
  limit_to (100 * MIB);

  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) none = run_one (session, NULL, NULL, "huge:0", &error);

  MUSTER_EXPECT_NULL (none);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "over the limit of memory (");
  MUSTER_EXPECT_EQ (muster_memory_n_refused (), refused + 1);
  g_clear_error (&error);
  g_autoptr (MusterTensor) some = run_one (session, NULL, NULL, "small:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  clear_limit ();
}

static MusterGraphBuilder *
fill_graph (const char *name, gint32 n)
{
  MusterGraphBuilder *b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) shape =
      muster_tensor_new_from_data (MUSTER_INT32, 1, (gint64[]){1}, &n, sizeof n, NULL);
  muster_graph_builder_constant (b, "shape", shape);
  add_constant (b, "one", 1);
  muster_graph_builder_node (b, "Fill", name);
  muster_graph_builder_input (b, "shape");
  muster_graph_builder_input (b, "one");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
  return b;
}

/* What several steps hold adds up, and is there again when it is freed. */
MUSTER_TEST (MemoryLimit, adds_up_the_tensors_of_all_steps)
{
  g_autoptr (MusterGraphBuilder) b = fill_graph ("ten", 10 * MIB / 4);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  MusterTensor *held[16] = {NULL};
  g_autoptr (GError) error = NULL;
  guint n = 0;
  limit_to (64 * MIB);

  while (n < G_N_ELEMENTS (held) &&
         (held[n] = run_one (session, NULL, NULL, "ten:0", &error)) != NULL)
    n++;

  MUSTER_EXPECT_GE (n, 5); /* a buffer is at most a quarter too large */
  MUSTER_EXPECT_LE (n, 6);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "over the limit of memory (");
  g_clear_error (&error);
  muster_tensor_unref (held[--n]);
  g_autoptr (MusterTensor) again = run_one (session, NULL, NULL, "ten:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  while (n > 0)
    muster_tensor_unref (held[--n]);
  clear_limit ();
}

/* Buffers that are kept for later tensors of another size don't stand in the way. */
MUSTER_TEST (MemoryLimit, frees_what_is_kept_for_reuse_before_it_refuses)
{
  g_autoptr (MusterGraphBuilder) small = fill_graph ("filled", 10 * MIB / 4);
  g_autoptr (MusterGraphBuilder) large = fill_graph ("filled", 40 * MIB / 4);
  g_autoptr (MusterSession) first = open_session (NULL, small);
  g_autoptr (MusterSession) second = open_session (NULL, large);
  limit_to (55 * MIB);
  MusterTensor *held[4];
  g_autoptr (GError) error = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (held); i++)
    held[i] = run_one (first, NULL, NULL, "filled:0", &error);
  for (gsize i = 0; i < G_N_ELEMENTS (held); i++)
    muster_tensor_unref (held[i]);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterTensor) got = run_one (second, NULL, NULL, "filled:0", &error);

  MUSTER_EXPECT_NO_ERROR (error);
  clear_limit ();
}

/* Many nodes, whose names begin with prefix. */
static MusterGraph *
large_graph (const char *prefix)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  for (guint i = 0; i < 20000; i++) {
    g_autofree char *name = g_strdup_printf ("%s/%u", prefix, i);
    muster_graph_builder_node (b, "NoOp", name);
  }
  return muster_graph_builder_end (b, NULL);
}

static MusterSession *
try_session (MusterMaster *master, const char *prefix, GError **error)
{
  g_autoptr (MusterGraph) graph = large_graph (prefix);
  return muster_master_create_session (master, graph, NULL, test_deadline (), NULL, error);
}

MUSTER_TEST (MemoryLimit, adds_up_the_graphs_of_all_sessions_and_counts_shared_ones_once)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (GError) error = NULL;
  const guint64 before = muster_memory_used (MUSTER_MEMORY_GRAPHS);
  g_autoptr (MusterSession) first = try_session (master, "a", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const guint64 one = muster_memory_used (MUSTER_MEMORY_GRAPHS) - before;
  MUSTER_EXPECT_GT (one, MIB);
  limit_to (one / 2);

  g_autoptr (MusterSession) same = try_session (master, "a", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_LT (muster_memory_used (MUSTER_MEMORY_GRAPHS), before + one * 3 / 2);
  g_autoptr (MusterSession) other = try_session (master, "b", &error);

  MUSTER_EXPECT_NULL (other);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "over the limit of memory (");
  g_clear_error (&error);

  /* Graphs that are kept without a session don't stand in the way. */
  MUSTER_EXPECT_TRUE (muster_session_close (first, test_deadline (), NULL, &error));
  MUSTER_EXPECT_TRUE (muster_session_close (same, test_deadline (), NULL, &error));
  g_clear_object (&first);
  g_clear_object (&same);
  g_autoptr (MusterSession) later = try_session (master, "b", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_clear_object (&later);
  g_clear_object (&master);
  clear_limit ();
  MUSTER_EXPECT_LT (muster_memory_used (MUSTER_MEMORY_GRAPHS), before + MIB / 2);
}

/* The master has a value of it: so this isn't a variable without one. */
MUSTER_TEST (MemoryLimit, tells_an_update_without_memory_from_one_without_a_value)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  const gint64 n = (gint64)(32 * MIB / 4);
  g_autoptr (MusterTensor) zeros = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  memset (muster_tensor_data_mutable (zeros), 0, 32 * MIB);
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, -1, NULL);
  g_autoptr (MusterTensor) scalar = muster_tensor_new_float (0);
  muster_graph_builder_node (b, "VariableV2", "v");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 1, &n);
  muster_graph_builder_node (b, "Assign", "set");
  muster_graph_builder_input (b, "v");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  add_constant (b, "rate", 1);
  muster_graph_builder_node (b, "ApplyGradientDescent", "train");
  muster_graph_builder_input (b, "v");
  muster_graph_builder_input (b, "rate");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) snapshot = run_one (session, "x:0", zeros, "set:0", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  limit_to (MIB);

  g_autoptr (MusterTensor) none = run_one (session, "x:0", zeros, "train:0", &error);

  MUSTER_EXPECT_NULL (none);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "not enough memory to update variable 'v'");
  clear_limit ();
}

MUSTER_TEST (MemoryLimit, counts_lookup_tables_until_they_are_cleared)
{
  g_autoptr (GError) error = NULL;
  MusterLookupStore store;
  muster_lookup_store_init (&store, MUSTER_STRING, MUSTER_INT64, 1);
  const gint64 n = 2, first = 0;
  g_autofree char *text = g_strnfill (100000, 'x');
  g_autoptr (MusterTensor) keys = muster_tensor_new_strv ((const char *const[]){text, "y", NULL});
  g_autoptr (MusterTensor) values = muster_tensor_new (MUSTER_INT64, 1, &n);
  memset (muster_tensor_data_mutable (values), 0, 16);
  const guint64 before = muster_memory_used (MUSTER_MEMORY_RESOURCES);

  MUSTER_EXPECT_TRUE (muster_lookup_store_reserve (&store, 1 << 20, NULL, &error));
  MUSTER_EXPECT_EQ (muster_lookup_store_add (&store, keys, values, first, NULL, &error), 0);
  MUSTER_EXPECT_NO_ERROR (error);
  const guint64 held = muster_memory_used (MUSTER_MEMORY_RESOURCES) - before;
  MUSTER_EXPECT_GT (held, ((guint64)1 << 20) * 36 + 90000);
  limit_to (MIB);
  MUSTER_EXPECT_FALSE (muster_lookup_store_reserve (&store, 1 << 21, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "over the limit of memory (");
  clear_limit ();

  muster_lookup_store_clear (&store);
  MUSTER_EXPECT_LE (muster_memory_used (MUSTER_MEMORY_RESOURCES), before + (16 << 10));
}

MUSTER_TEST (MemoryLimit, returns_what_a_refused_key_of_a_dense_table_took)
{
  g_autoptr (GError) error = NULL;
  const gint64 n = 1;
  g_autofree char *text = g_strnfill (MIB, 'x');
  g_autoptr (MusterTensor) empty = muster_tensor_new_string ("");
  g_autoptr (MusterTensor) deleted = muster_tensor_new_string ("-");
  g_autoptr (MusterTensor) keys = muster_tensor_new_strv ((const char *const[]){text, NULL});
  g_autoptr (MusterTensor) values = muster_tensor_new (MUSTER_INT64, 1, &n);
  memset (muster_tensor_data_mutable (values), 0, 8);
  const MusterDenseSpec spec = {empty, deleted, MUSTER_INT64, 1, 16, 0.8f};
  MusterDenseTable *table = muster_dense_table_new (&spec, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const guint64 before = muster_memory_used (MUSTER_MEMORY_RESOURCES);

  MusterBudget budget = {.limit = 1000};
  MUSTER_EXPECT_FALSE (muster_dense_table_insert (table, keys, values, &budget, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "the operation exceeds its memory limit");

  MUSTER_EXPECT_LE (muster_memory_used (MUSTER_MEMORY_RESOURCES), before + (16 << 10));
  muster_dense_table_free (table);
}

/* A queue of numbers, each a tensor of its own. */
static MusterGraphBuilder *
small_queue_graph (void)
{
  MusterGraphBuilder *b = muster_graph_builder_new ();
  const MusterDType dtype = MUSTER_FLOAT;
  g_autoptr (MusterTensor) shape = muster_tensor_new (MUSTER_INT32, 1, (gint64[]){0});
  muster_graph_builder_constant (b, "shape", shape);
  muster_graph_builder_node (b, "RandomUniform", "number");
  muster_graph_builder_input (b, "shape");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "T", MUSTER_INT32);
  muster_graph_builder_node (b, "FIFOQueueV2", "queue");
  muster_graph_builder_attr_types (b, "component_types", &dtype, 1);
  muster_graph_builder_node (b, "QueueEnqueueV2", "put");
  muster_graph_builder_input (b, "queue");
  muster_graph_builder_input (b, "number");
  muster_graph_builder_attr_types (b, "Tcomponents", &dtype, 1);
  return b;
}

static gboolean
run_target (MusterSession *session, const char *target, GError **error)
{
  const MusterStep step = {.targets = &target, .n_targets = 1, .deadline_us = test_deadline ()};
  return muster_session_run (session, &step, NULL, NULL, NULL, error);
}

/* Each takes less than threads count on their own. */
MUSTER_TEST (MemoryLimit, refuses_small_elements_of_a_queue)
{
  g_autoptr (MusterGraphBuilder) b = small_queue_graph ();
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (GError) error = NULL;
  guint n = 0;
  MUSTER_ASSERT_TRUE (run_target (session, "put", &error));
  limit_to (MIB);

  while (n < 20000 && run_target (session, "put", &error))
    n++;

  MUSTER_EXPECT_GT (n, 1000);
  MUSTER_EXPECT_LT (n, 20000);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "over the limit of memory (");
  clear_limit ();
}

/* A variable outlives its session. */
MUSTER_TEST (MemoryLimit, counts_the_names_of_variables)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autofree char *name = g_strnfill (MIB, 'v');
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GError) error = NULL;
  muster_graph_builder_node (b, "VarHandleOp", "v");
  muster_graph_builder_attr_string (b, "shared_name", name);
  muster_graph_builder_attr_string (b, "container", "");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 0, NULL);
  muster_graph_builder_node (b, "VarIsInitializedOp", "has");
  muster_graph_builder_input (b, "v");
  const guint64 before = muster_memory_used (MUSTER_MEMORY_RESOURCES);
  g_autoptr (MusterSession) session = open_session (master, b);
  g_autoptr (MusterTensor) has = run_one (session, NULL, NULL, "has:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_session_close_quietly (session);

  MUSTER_EXPECT_GE (muster_memory_used (MUSTER_MEMORY_RESOURCES), before + MIB / 2);
}

static void
add_fill (MusterGraphBuilder *b, const char *name, const char *after)
{
  muster_graph_builder_node (b, "Fill", name);
  muster_graph_builder_input (b, "shape");
  muster_graph_builder_input (b, "one");
  if (after != NULL)
    muster_graph_builder_input (b, after);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
}

/* "ten" and "more" of 10 MiB each, "both" their sum. */
static MusterSession *
open_refusable (void)
{
  g_autoptr (MusterGraphBuilder) b = fill_graph ("ten", 10 * MIB / 4);
  add_fill (b, "more", "^ten");
  add_binary (b, "Add", "both", "ten", "more");
  return open_session (NULL, b);
}

/* "written" adds the variable "block" of 10 MiB to itself, after "add" has added to "v". */
static MusterSession *
open_written (void)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) block = muster_tensor_new (MUSTER_FLOAT, 1, (gint64[]){10 * MIB / 4});
  memset (muster_tensor_data_mutable (block), 0, 10 * MIB);
  add_constant (b, "one", 1);
  add_variable (b, "v", 1);
  muster_graph_builder_variable (b, "block", block);
  muster_graph_builder_group (b, "init", (const char *const[]){"v/Assign", "block/Assign", NULL});
  add_binary (b, "AssignAdd", "add", "v", "one");
  add_binary (b, "AssignAdd", "written", "block", "block/read");
  muster_graph_builder_input (b, "^add");
  return open_session (NULL, b);
}

static gsize
refused_bytes (MusterSession *session, const char *fetch, gsize left)
{
  g_autoptr (GError) error = NULL;
  muster_memory_forget_refused ();
  limit_to (left);
  g_autoptr (MusterTensor) none = run_one (session, NULL, NULL, fetch, &error);
  clear_limit ();
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  return muster_memory_refused_here ();
}

MUSTER_TEST (MemoryLimit, tells_a_step_that_may_be_made_again_from_one_that_has_written)
{
  g_autoptr (MusterSession) session = open_refusable ();
  g_autoptr (MusterSession) written = open_written ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_session_run_op (written, "init", test_deadline (), NULL, &error));
  muster_memory_add (MUSTER_MEMORY_GRAPHS, 100 * MIB); /* of others */

  MUSTER_EXPECT_GE (refused_bytes (session, "ten:0", MIB), 10 * MIB);
  MUSTER_EXPECT_GE (refused_bytes (session, "both:0", 15 * MIB), 10 * MIB);
  MUSTER_EXPECT_EQ (refused_bytes (written, "written:0", MIB), 0);

  muster_memory_release (MUSTER_MEMORY_GRAPHS, 100 * MIB);
  MUSTER_EXPECT_EQ (fetch_float (written, "v/read:0"), 2);
}

MUSTER_TEST (MemoryLimit, tells_a_step_that_may_be_made_again_from_one_that_never_fits)
{
  g_autoptr (MusterSession) session = open_refusable ();
  const gsize of_one = refused_bytes (session, "ten:0", MIB);
  const gsize of_several = refused_bytes (session, "both:0", 15 * MIB);
  MUSTER_EXPECT_EQ (of_one, 0);
  MUSTER_EXPECT_EQ (of_several, 0);
}

/* A step on a thread that adds to "v", runs "asked" and adds to "w". */
typedef struct {
  MusterSession *session; /* (not owned) */
  gint64 deadline_us;
  GCancellable *cancellable; /* (owned) */
  GThread *thread;           /* (owned) */
  MusterTensor *asked;       /* (owned) (nullable) */
  GError *error;             /* (owned) (nullable) */
  gint has_ended;            /* atomic */
} Asking;

static gpointer
run_asking (gpointer data)
{
  Asking *self = data;
  const MusterStep step = {.fetches = (const char *const[]){"asked:0"},
                           .n_fetches = 1,
                           .targets = (const char *const[]){"both"},
                           .n_targets = 1,
                           .deadline_us = self->deadline_us};
  (void)muster_session_run (self->session, &step, &self->asked, NULL, self->cancellable,
                            &self->error);
  g_atomic_int_set (&self->has_ended, TRUE);
  return NULL;
}

/* With so much left beside what others hold. Returns once the step has been refused more: from then
 * on it waits, for five seconds if nothing changes. */
static void
asking_begin (Asking *self, MusterSession *session, gsize left, gint64 deadline_us)
{
  const guint64 refused = muster_memory_n_refused ();
  const gint64 end_us = test_deadline ();
  *self =
      (Asking){.session = session, .deadline_us = deadline_us, .cancellable = g_cancellable_new ()};
  limit_to (100 * MIB + left);
  muster_memory_add (MUSTER_MEMORY_GRAPHS, 100 * MIB);
  self->thread = g_thread_new ("asking", run_asking, self);
  while (muster_memory_n_refused () == refused && !g_atomic_int_get (&self->has_ended) &&
         muster_clock_now_us (muster_system_clock ()) < end_us)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (muster_memory_n_refused (), refused + 1);
}

/* For some of its pauses it doesn't end. */
static void
asking_stays (const Asking *self)
{
  const gint64 end_us = muster_clock_now_us (muster_system_clock ()) + 100 * MUSTER_MILLISECOND;
  while (!g_atomic_int_get (&self->has_ended) &&
         muster_clock_now_us (muster_system_clock ()) < end_us)
    g_thread_yield ();
  MUSTER_EXPECT_FALSE (g_atomic_int_get (&self->has_ended));
}

static void
asking_join (Asking *self)
{
  g_thread_join (self->thread);
  g_object_unref (self->cancellable);
}

static void
release_others (void)
{
  muster_memory_release (MUSTER_MEMORY_GRAPHS, 100 * MIB);
}

static void
asking_clear (Asking *self)
{
  muster_tensor_unref (self->asked);
  g_clear_error (&self->error);
  clear_limit ();
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Asking, asking_clear)

/* "v", "w" and the handle "r" of a variable, each 1 after "init"; "whole" of 2 × 10 MiB, "places"
 * of
 * 10. To be followed by "asked", after "^add". */
static MusterGraphBuilder *
asking_graph (void)
{
  MusterGraphBuilder *b = fill_graph ("ten", 10 * MIB / 4);
  const gint32 dims[] = {2, 10 * MIB / 4};
  g_autoptr (MusterTensor) two_by_ten =
      muster_tensor_new_from_data (MUSTER_INT32, 1, (gint64[]){2}, dims, sizeof dims, NULL);
  muster_graph_builder_constant (b, "two_by_ten", two_by_ten);
  add_int (b, "zero", 0);
  add_variable (b, "v", 1);
  add_variable (b, "w", 1);
  muster_graph_builder_group (b, "init", (const char *const[]){"v/Assign", "w/Assign", NULL});
  add_binary (b, "AssignAdd", "add", "v", "one");
  return b;
}

/* Adds what "both" does, and opens. */
static MusterSession *
asking_open (MusterMaster *master, MusterGraphBuilder *b)
{
  g_autoptr (GError) error = NULL;
  add_binary (b, "AssignAdd", "both", "w", "one");
  muster_graph_builder_input (b, "^asked");
  MusterSession *session = open_session (master, b);
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "init", test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

static MusterSession *
open_filling (MusterMaster *master)
{
  g_autoptr (MusterGraphBuilder) b = asking_graph ();
  add_fill (b, "asked", "^add");
  return asking_open (master, b);
}

static void
expect_added (MusterSession *session, float v, float w)
{
  MUSTER_EXPECT_EQ (fetch_float (session, "v/read:0"), v);
  MUSTER_EXPECT_EQ (fetch_float (session, "w/read:0"), w);
}

MUSTER_TEST (MemoryLimit, makes_a_step_that_has_written_wait_for_what_others_use)
{
  g_autoptr (MusterSession) session = open_filling (NULL);
  g_auto (Asking) asking;
  asking_begin (&asking, session, 5 * MIB, test_deadline ());
  const guint64 refused = muster_memory_n_refused ();

  release_others ();
  asking_join (&asking);

  MUSTER_EXPECT_NO_ERROR (asking.error);
  MUSTER_EXPECT_EQ (muster_memory_n_refused (), refused);
  expect_added (session, 2, 2);
}

/* Its client is gone, but nothing could undo the half of it. */
MUSTER_TEST (MemoryLimit, lets_a_step_that_waits_end_once_it_is_cancelled)
{
  g_autoptr (MusterSession) session = open_filling (NULL);
  g_auto (Asking) asking;
  asking_begin (&asking, session, 5 * MIB, test_deadline ());

  g_cancellable_cancel (asking.cancellable);
  asking_stays (&asking);
  release_others ();
  asking_join (&asking);

  expect_added (session, 2, 2);
}

static gpointer
close_session (gpointer session)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));
  return NULL;
}

MUSTER_TEST (MemoryLimit, lets_a_step_that_waits_end_once_its_session_is_closed)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = open_filling (master);
  g_autoptr (MusterSession) other = open_filling (master);
  g_auto (Asking) asking;
  asking_begin (&asking, session, 5 * MIB, test_deadline ());

  GThread *closing = g_thread_new ("closing", close_session, session);
  asking_stays (&asking);
  release_others ();
  asking_join (&asking);
  g_thread_join (closing);

  expect_added (other, 2, 2);
}

MUSTER_TEST (MemoryLimit, ends_a_step_that_waits_at_its_deadline)
{
  g_autoptr (MusterSession) session = open_filling (NULL);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  g_auto (Asking) asking;
  asking_begin (&asking, session, 5 * MIB, now_us + MUSTER_SECOND);

  asking_join (&asking);
  release_others ();

  MUSTER_EXPECT_ERROR (asking.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  expect_added (session, 2, 1);
}

/* --- by a fake clock --- */

static void
use_more (gpointer unused G_GNUC_UNUSED)
{
  muster_memory_add (MUSTER_MEMORY_GRAPHS, 64 << 10);
}

/* How long a step waits for memory that never comes, while what is in use changes so often. */
static gint64
waited_us (guint n_changes, gint64 interval_us)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterSession) session = open_filling (NULL);
  for (guint i = 1; i <= n_changes; i++)
    muster_fake_clock_at (clock, i * interval_us, use_more, NULL);
  muster_run_wait_by_clock (MUSTER_CLOCK (clock));
  g_auto (Asking) asking;
  asking_begin (&asking, session, 5 * MIB, test_deadline ());
  asking_join (&asking);
  muster_run_wait_by_clock (NULL);
  MUSTER_EXPECT_ERROR (asking.error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  muster_memory_release (MUSTER_MEMORY_GRAPHS,
                         (gsize)(64 << 10) *
                             MIN (n_changes, (guint)(30 * MUSTER_SECOND / interval_us)));
  release_others ();
  expect_added (session, 2, 1);
  return muster_fake_clock_elapsed_us (clock);
}

MUSTER_TEST (MemoryLimit, lets_a_step_wait_thirty_seconds_in_all)
{
  const gint64 took_us = waited_us (12, 3 * MUSTER_SECOND);
  MUSTER_EXPECT_GE (took_us, 30 * MUSTER_SECOND);
  MUSTER_EXPECT_LT (took_us, 31 * MUSTER_SECOND);
}

MUSTER_TEST (MemoryLimit, lets_a_step_wait_five_seconds_without_a_change)
{
  const gint64 took_us = waited_us (1, 2 * MUSTER_SECOND);
  MUSTER_EXPECT_GE (took_us, 7 * MUSTER_SECOND);
  MUSTER_EXPECT_LT (took_us, 8 * MUSTER_SECOND);
}

/* Takes part in a loop of two pieces, each of which waits for the other. */
static void
meet (gint64 begin G_GNUC_UNUSED, gint64 end G_GNUC_UNUSED, gpointer n_there)
{
  const gint64 end_us = muster_clock_now_us (muster_system_clock ()) + 5 * MUSTER_SECOND;
  g_atomic_int_inc ((gint *)n_there);
  while (g_atomic_int_get ((gint *)n_there) < 2 &&
         muster_clock_now_us (muster_system_clock ()) < end_us)
    g_thread_yield ();
  if (g_atomic_int_get ((gint *)n_there) < 2)
    g_atomic_int_set ((gint *)n_there, -2);
}

static void
run_loop (gpointer n_there)
{
  muster_parallel_for (2, 1, meet, n_there);
  release_others ();
}

/* All processors but one are needed by others: a loop gets that one. */
MUSTER_TEST (MemoryLimit, leaves_the_processor_of_a_step_that_waits_to_others)
{
  if (g_get_num_processors () < 2)
    MUSTER_SKIP ("a machine of one processor");
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterSession) session = open_filling (NULL);
  gint n_there = 0;
  for (guint i = 1; i < g_get_num_processors (); i++)
    muster_parallel_enter ();
  muster_fake_clock_at (clock, MUSTER_SECOND, run_loop, &n_there);
  muster_run_wait_by_clock (MUSTER_CLOCK (clock));
  g_auto (Asking) asking;
  asking_begin (&asking, session, 5 * MIB, test_deadline ());
  asking_join (&asking);
  muster_run_wait_by_clock (NULL);
  for (guint i = 1; i < g_get_num_processors (); i++)
    muster_parallel_leave ();

  MUSTER_EXPECT_NO_ERROR (asking.error);
  MUSTER_EXPECT_EQ (n_there, 2);
  expect_added (session, 2, 2);
}

/* What the first half would hold, another gets. */
MUSTER_TEST (MemoryLimit, frees_the_outputs_of_a_kernel_that_waits)
{
  g_autoptr (MusterGraphBuilder) b = asking_graph ();
  muster_graph_builder_node (b, "Fill", "whole");
  muster_graph_builder_input (b, "two_by_ten");
  muster_graph_builder_input (b, "one");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
  add_binary (b, "AssignAdd", "then", "add", "one");
  muster_graph_builder_input (b, "^whole");
  muster_graph_builder_node (b, "Split", "asked");
  muster_graph_builder_input (b, "zero");
  muster_graph_builder_input (b, "whole");
  muster_graph_builder_input (b, "^then");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_int (b, "num_split", 2);
  g_autoptr (MusterSession) session = asking_open (NULL, b);
  const gint64 end_us = test_deadline ();
  g_auto (Asking) asking;
  asking_begin (&asking, session, 35 * MIB, test_deadline ());

  while (!muster_memory_take (MUSTER_MEMORY_GRAPHS, 12 * MIB, NULL) &&
         muster_clock_now_us (muster_system_clock ()) < end_us)
    g_thread_yield ();
  muster_memory_release (MUSTER_MEMORY_GRAPHS, 12 * MIB);
  release_others ();
  asking_join (&asking);

  MUSTER_EXPECT_NO_ERROR (asking.error);
  expect_added (session, 3, 2);
}

static void
add_halves (MusterGraphBuilder *b, const char *name, const gint64 *dims)
{
  g_autoptr (MusterTensor) halves = muster_tensor_new (MUSTER_HALF, 2, dims);
  memset (muster_tensor_data_mutable (halves), 0, muster_tensor_n_bytes (halves));
  muster_graph_builder_constant (b, name, halves);
}

/* A product of halves has one of floats beside it, which is freed when it fails: it isn't computed
 * again and again for the bytes of its result alone. */
MUSTER_TEST (MemoryLimit, waits_for_what_a_kernel_holds_meanwhile)
{
  g_autoptr (MusterGraphBuilder) b = asking_graph ();
  add_halves (b, "column", (gint64[]){2048, 1});
  add_halves (b, "row", (gint64[]){1, 2048});
  add_binary (b, "MatMul", "asked", "column", "row");
  muster_graph_builder_attr_type (b, "T", MUSTER_HALF);
  muster_graph_builder_input (b, "^add");
  g_autoptr (MusterSession) session = asking_open (NULL, b);
  g_auto (Asking) asking;
  asking_begin (&asking, session, 20 * MIB, test_deadline ());
  const guint64 refused = muster_memory_n_refused ();

  asking_join (&asking);

  MUSTER_EXPECT_ERROR (asking.error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_LE (muster_memory_n_refused (), refused + 1);
  release_others ();
  expect_added (session, 2, 1);
}

/* Ops that are always computed but only read. */
MUSTER_TEST (MemoryLimit, makes_ops_that_only_read_wait)
{
  g_autoptr (MusterGraphBuilder) b = asking_graph ();
  muster_graph_builder_node (b, "VarHandleOp", "r");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 1, (gint64[]){2});
  muster_graph_builder_attr_string (b, "container", "");
  muster_graph_builder_attr_string (b, "shared_name", "r");
  const float rows[] = {3, 4};
  g_autoptr (MusterTensor) value =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, (gint64[]){2}, rows, sizeof rows, NULL);
  muster_graph_builder_constant (b, "rows", value);
  muster_graph_builder_node (b, "AssignVariableOp", "assign");
  muster_graph_builder_input (b, "r");
  muster_graph_builder_input (b, "rows");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "Fill", "places");
  muster_graph_builder_input (b, "shape");
  muster_graph_builder_input (b, "zero");
  muster_graph_builder_input (b, "^assign");
  muster_graph_builder_attr_type (b, "T", MUSTER_INT32);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
  muster_graph_builder_node (b, "ResourceGather", "asked");
  muster_graph_builder_input (b, "r");
  muster_graph_builder_input (b, "places");
  muster_graph_builder_input (b, "^add");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "Tindices", MUSTER_INT32);
  g_autoptr (MusterSession) session = asking_open (NULL, b);
  g_auto (Asking) asking;
  asking_begin (&asking, session, 15 * MIB, test_deadline ());

  release_others ();
  asking_join (&asking);

  MUSTER_ASSERT_NO_ERROR (asking.error);
  MUSTER_EXPECT_EQ (((const float *)muster_tensor_data (asking.asked))[7], 3);
  expect_added (session, 2, 2);
}

static MusterSession *
open_drawing (void)
{
  g_autoptr (MusterGraphBuilder) b = asking_graph ();
  muster_graph_builder_node (b, "RandomUniform", "asked");
  muster_graph_builder_input (b, "shape");
  muster_graph_builder_input (b, "^add");
  muster_graph_builder_attr_type (b, "T", MUSTER_INT32);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_int (b, "seed", 5);
  muster_graph_builder_attr_int (b, "seed2", 6);
  return asking_open (NULL, b);
}

MUSTER_TEST (MemoryLimit, draws_after_a_wait_what_it_would_have_drawn)
{
  g_autoptr (MusterSession) session = open_drawing ();
  g_autoptr (MusterSession) other = open_drawing ();
  g_autoptr (GError) error = NULL;
  g_auto (Asking) asking;
  asking_begin (&asking, session, 5 * MIB, test_deadline ());

  release_others ();
  asking_join (&asking);
  g_autoptr (MusterTensor) same = run_one (other, NULL, NULL, "asked:0", &error);

  MUSTER_ASSERT_NO_ERROR (asking.error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (asking.asked, same));
}

/* Every op that is always computed leaves something behind, but for MUSTER_OP_READER. That none is
 * forgotten: //tests/tensorflow:descriptors_test. */
static const char acting[] =
    "AccumulatorApplyGradient AccumulatorSetGlobalStep AccumulatorTakeGradient "
    "AddManySparseToTensorsMap AddSparseToTensorsMap ApplyAdaMax ApplyAdadelta ApplyAdagrad "
    "ApplyAdagradDA ApplyAdagradV2 ApplyAdam ApplyAddSign ApplyCenteredRMSProp ApplyFtrl "
    "ApplyFtrlV2 ApplyGradientDescent ApplyMomentum ApplyPowerSign ApplyProximalAdagrad "
    "ApplyProximalGradientDescent ApplyRMSProp Assign AssignAdd AssignAddVariableOp "
    "AssignSub AssignSubVariableOp AssignVariableOp CountUpTo DestroyResourceOp "
    "DestroyTemporaryVariable InitializeTable InitializeTableFromTextFile "
    "InitializeTableFromTextFileV2 InitializeTableV2 LearnedUnigramCandidateSampler "
    "LookupTableImport LookupTableImportV2 LookupTableInsert LookupTableInsertV2 "
    "LookupTableRemoveV2 MergeV2Checkpoints QueueClose QueueCloseV2 QueueDequeue "
    "QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2 QueueDequeueV2 "
    "QueueEnqueue QueueEnqueueMany QueueEnqueueManyV2 QueueEnqueueV2 "
    "ResourceAccumulatorApplyGradient ResourceAccumulatorSetGlobalStep "
    "ResourceAccumulatorTakeGradient ResourceApplyAdaMax ResourceApplyAdadelta "
    "ResourceApplyAdagrad ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam "
    "ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp "
    "ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent "
    "ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign "
    "ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp "
    "ResourceCountUpTo ResourceScatterAdd ResourceScatterDiv ResourceScatterMax "
    "ResourceScatterMin ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdMax "
    "ResourceScatterNdMin ResourceScatterNdSub ResourceScatterNdUpdate ResourceScatterSub "
    "ResourceScatterUpdate ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad "
    "ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2 "
    "ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2 "
    "ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum "
    "ResourceSparseApplyProximalAdagrad ResourceSparseApplyProximalGradientDescent "
    "ResourceSparseApplyRMSProp ResourceStridedSliceAssign SaveV2 ScatterAdd ScatterDiv "
    "ScatterMax ScatterMin ScatterMul ScatterNdAdd ScatterNdMax ScatterNdMin ScatterNdSub "
    "ScatterNdUpdate ScatterSub ScatterUpdate SparseAccumulatorApplyGradient "
    "SparseAccumulatorTakeGradient SparseApplyAdadelta SparseApplyAdagrad "
    "SparseApplyAdagradDA SparseApplyAdagradV2 SparseApplyCenteredRMSProp SparseApplyFtrl "
    "SparseApplyFtrlV2 SparseApplyMomentum SparseApplyProximalAdagrad "
    "SparseApplyProximalGradientDescent SparseApplyRMSProp StridedSliceAssign "
    "TakeManySparseFromTensorsMap TemporaryVariable ThreadUnsafeUnigramCandidateSampler";

MUSTER_TEST (MemoryLimit, knows_of_every_op_whether_it_acts)
{
  muster_op_tables_register ();
  g_auto (GStrv) all = g_strsplit (acting, " ", -1);
  g_autoptr (GPtrArray) names = muster_op_names ();
  guint n_acting = 0;

  for (guint i = 0; i < names->len; i++) {
    const MusterOp *op = muster_op_find_entry (names->pdata[i])->op;
    n_acting += muster_op_acts (op);
    if (muster_op_acts (op) != g_strv_contains ((const char *const *)all, op->name))
      MUSTER_FAIL ("%s: is it MUSTER_OP_STATEFUL or MUSTER_OP_READER?", op->name);
  }
  MUSTER_EXPECT_EQ (n_acting, g_strv_length (all));
}
