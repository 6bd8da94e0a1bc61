// SPDX-License-Identifier: Apache-2.0
#include "engine/run/registry.h"
#include "tests/engine/fixture.h"

/* An op that waits until the test opens its gate: what a dequeue will be. One gate for each name of
 * a node. */
typedef struct {
  MusterKernel *suspended; /* (nullable) */
  guint n_suspended;       /* how often it ever did */
  guint n_cancelled;
  gboolean is_computing, is_released;
} Gate;

static GMutex lock;
static GCond changed;
static Gate gate;

static void
on_cancel (MusterKernel *k, gpointer data G_GNUC_UNUSED)
{
  g_mutex_lock (&lock);
  const gboolean mine = gate.suspended == k;
  if (mine)
    gate.suspended = NULL;
  gate.n_cancelled++;
  g_mutex_unlock (&lock);
  if (mine)
    muster_kernel_resume (k, g_error_new (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "gate cancelled"));
}

static gboolean
wait_at_gate (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_suspend (k, on_cancel, NULL);
  g_mutex_lock (&lock);
  gate.suspended = k;
  gate.n_suspended++;
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
  return TRUE;
}

/* Opens the gate from within the same step: deadlocks an engine that stops at what waits. */
static void
open_gate (float value)
{
  g_mutex_lock (&lock);
  MusterKernel *k = g_steal_pointer (&gate.suspended);
  g_mutex_unlock (&lock);
  MUSTER_EXPECT_TRUE (k != NULL);
  if (k == NULL)
    return;
  muster_kernel_set_output (k, 0, muster_tensor_new_float (value));
  muster_kernel_resume (k, NULL);
}

static gboolean
open_from_within (MusterKernel *k G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  open_gate (8);
  return TRUE;
}

/* Resumes before it has even returned. */
static gboolean
proxy_at_once (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_suspend (k, NULL, NULL);
  muster_kernel_set_output (k, 0, muster_tensor_new_float (3));
  muster_kernel_resume (k, NULL);
  return TRUE;
}

static gboolean
fail_late (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_suspend (k, NULL, NULL);
  muster_kernel_resume (k, g_error_new (MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE, "it is closed"));
  return TRUE;
}

static gboolean
ask_for_too_much (MusterKernel *k, GError **error)
{
  const gint64 dims[] = {(gint64)1 << 40, (gint64)1 << 10};
  return muster_kernel_output (k, 0, 2, dims, error) != NULL;
}

static gboolean
lie (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_set_output (k, 0, muster_tensor_new_int32 (1));
  return TRUE;
}

static gboolean
forget (MusterKernel *k G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

/* Computes until the test has seen enough. */
static gboolean
compute_until_released (MusterKernel *k G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  g_mutex_lock (&lock);
  gate.is_computing = TRUE;
  g_cond_broadcast (&changed);
  const gint64 end_us = test_deadline ();
  while (!gate.is_released && g_cond_wait_until (&changed, &lock, end_us))
    ;
  gate.is_computing = FALSE;
  g_mutex_unlock (&lock);
  muster_kernel_set_output (k, 0, muster_tensor_new_float (1));
  return TRUE;
}

static const MusterOp ops[] = {
    {"TestCompute", " -> y:float", "", compute_until_released, MUSTER_OP_STATEFUL},
    {"TestGate", " -> y:float", "", wait_at_gate, MUSTER_OP_STATEFUL},
    {"TestOpenGate", " -> ", "", open_from_within, MUSTER_OP_STATEFUL},
    {"TestPass", " -> y:float", "", proxy_at_once, MUSTER_OP_STATEFUL},
    {"TestFailLate", " -> y:float", "", fail_late, MUSTER_OP_STATEFUL},
    {"TestTooMuch", " -> y:float", "", ask_for_too_much, 0},
    {"TestLie", " -> y:float", "", lie, 0},
    {"TestForget", " -> y:float", "", forget, 0},
    {0},
};

static MusterSession *
open_gated (MusterMaster *master)
{
  static gsize once;
  if (g_once_init_enter (&once)) {
    muster_op_register (ops);
    g_once_init_leave (&once, 1);
  }
  gate = (Gate){0};
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  for (const MusterOp *op = ops; op->name != NULL; op++)
    muster_graph_builder_node (b, op->name, op->name + strlen ("Test"));
  add_constant (b, "one", 1);
  add_binary (b, "AddV2", "sum", "Gate", "one");
  add_unary (b, "Neg", "minus", "Pass");
  add_variable (b, "v", 4);
  return open_session (master, b);
}

/* A step on a thread of its own. */
typedef struct {
  MusterSession *session;
  const char *fetch;
  const char *target; /* (nullable) */
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  float value;
  GError *error; /* (owned) (nullable) */
} Job;

static gpointer
do_job (gpointer data)
{
  Job *job = data;
  MusterTensor *got = NULL;
  const MusterStep step = {.fetches = &job->fetch,
                           .n_fetches = 1,
                           .targets = &job->target,
                           .n_targets = job->target != NULL ? 1 : 0,
                           .deadline_us = job->deadline_us};
  if (muster_session_run (job->session, &step, &got, NULL, job->cancellable, &job->error))
    job->value = float_of (got);
  muster_tensor_unref (got);
  return NULL;
}

static void
wait_until_suspended (void)
{
  const gint64 end_us = test_deadline ();
  g_mutex_lock (&lock);
  while (gate.suspended == NULL && g_cond_wait_until (&changed, &lock, end_us))
    ;
  MUSTER_EXPECT_TRUE (gate.suspended != NULL);
  g_mutex_unlock (&lock);
}

MUSTER_TEST (Executor, goes_on_when_a_suspended_kernel_is_resumed_from_another_thread)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  Job job = {.session = session, .fetch = "sum", .deadline_us = test_deadline ()};
  GThread *thread = g_thread_new ("step", do_job, &job);
  wait_until_suspended ();
  open_gate (41);
  g_thread_join (thread);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (job.value, 42.0f);
  MUSTER_EXPECT_EQ (gate.n_cancelled, 0);
}

MUSTER_TEST (Executor, runs_what_does_not_wait_for_a_suspended_kernel)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  Job job = {
      .session = session, .fetch = "sum", .target = "OpenGate", .deadline_us = test_deadline ()};
  do_job (&job);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (job.value, 9.0f);
}

MUSTER_TEST (Executor, takes_a_resume_that_comes_before_the_kernel_returns)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  for (int i = 0; i < 3; i++)
    MUSTER_EXPECT_EQ (fetch_float (session, "minus"), -3.0f);
}

MUSTER_TEST (Executor, gives_the_error_of_a_resume_with_its_node)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_gated (NULL);
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "FailLate", &error);
  EXPECT_SAYS (error, MUSTER_ERROR_OUT_OF_RANGE,
               "it is closed\n\t [[{{node FailLate}}]] (op 'TestFailLate')");
}

MUSTER_TEST (Executor, stops_a_suspended_step_at_its_deadline)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  Job job = {.session = session, .fetch = "sum", .deadline_us = now_us + 5 * MUSTER_MILLISECOND};
  do_job (&job);

  EXPECT_SAYS (job.error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Deadline Exceeded");
  MUSTER_EXPECT_EQ (gate.n_cancelled, gate.n_suspended);
  g_clear_error (&job.error);
}

MUSTER_TEST (Executor, takes_a_timeout_from_the_run_options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_gated (NULL);
  const guint8 timeout_in_ms_5[] = {2 << 3, 5};
  g_autoptr (GBytes) options = g_bytes_new_static (timeout_in_ms_5, sizeof timeout_in_ms_5);
  const char *target = "Gate";
  const MusterStep step = {.targets = &target, .n_targets = 1, .options = options};
  MUSTER_EXPECT_FALSE (muster_session_run (session, &step, NULL, NULL, NULL, &error));

  EXPECT_SAYS (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Deadline Exceeded");
}

MUSTER_TEST (Executor, stops_a_suspended_step_whose_caller_cancels)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Job job = {.session = session,
             .fetch = "sum",
             .cancellable = cancellable,
             .deadline_us = test_deadline ()};
  GThread *thread = g_thread_new ("step", do_job, &job);
  wait_until_suspended ();
  g_cancellable_cancel (cancellable);
  g_thread_join (thread);

  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (gate.n_cancelled, 1);
  g_clear_error (&job.error);
}

MUSTER_TEST (Executor, runs_nothing_for_a_caller_who_has_cancelled)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_cancellable_cancel (cancellable);
  Job job = {.session = session, .fetch = "sum", .cancellable = cancellable};

  do_job (&job);

  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (gate.n_suspended, 0);
  g_clear_error (&job.error);
}

MUSTER_TEST (Executor, a_close_stops_a_suspended_step)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  Job job = {.session = session, .fetch = "sum", .deadline_us = test_deadline ()};
  GThread *thread = g_thread_new ("step", do_job, &job);
  wait_until_suspended ();
  MUSTER_EXPECT_TRUE (muster_session_close (session, MUSTER_WAIT_FOREVER, NULL, NULL));
  g_thread_join (thread);

  EXPECT_SAYS (job.error, MUSTER_ERROR_CANCELLED,
               "Step was cancelled by an explicit call to `Session::Close()`.");
  MUSTER_EXPECT_EQ (gate.n_cancelled, 1);
  g_clear_error (&job.error);
}

/* The caller's memory may go once a session is closed: nothing of it runs on then. */
MUSTER_TEST (Executor, a_close_waits_for_what_computes)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  g_autoptr (GError) late = NULL;
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) given_up = NULL;
  Job job = {.session = session, .fetch = "Compute", .deadline_us = test_deadline ()};
  GThread *thread = g_thread_new ("step", do_job, &job);
  const gint64 end_us = test_deadline ();
  g_mutex_lock (&lock);
  while (!gate.is_computing && g_cond_wait_until (&changed, &lock, end_us))
    ;
  g_mutex_unlock (&lock);
  const gint64 soon_us = test_deadline_in (5 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_FALSE (muster_session_close (session, soon_us, NULL, &late));
  EXPECT_SAYS (late, MUSTER_ERROR_DEADLINE_EXCEEDED, "a step of it still runs");
  g_cancellable_cancel (cancelled);
  MUSTER_EXPECT_FALSE (muster_session_close (session, test_deadline (), cancelled, &given_up));
  MUSTER_EXPECT_ERROR (given_up, G_IO_ERROR, G_IO_ERROR_CANCELLED);

  g_mutex_lock (&lock);
  gate.is_released = TRUE;
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, NULL));
  MUSTER_EXPECT_FALSE (gate.is_computing);
  g_thread_join (thread);
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (job.value, 1);
}

/* --- a step that has changed a variable --- */

/* "late" adds 100 to v, after "between", which is after a change of a variable by op. */
static MusterSession *
open_writing (const char *op, const char *between)
{
  g_autoptr (MusterSession) ops_are_known = open_gated (NULL);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  const float none[2] = {0};
  const gint32 index = 0;
  g_autoptr (MusterTensor) two =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, (gint64[]){2}, none, sizeof none, NULL);
  g_autoptr (MusterTensor) place =
      muster_tensor_new_from_data (MUSTER_INT32, 2, (gint64[]){1, 1}, &index, sizeof index, NULL);
  g_autoptr (MusterTensor) one =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, (gint64[]){1}, none, sizeof *none, NULL);
  g_autoptr (GError) error = NULL;
  const char *const initial[] = {"v/Assign", "rows/Assign"};
  const MusterStep init = {.targets = initial, .n_targets = 2, .deadline_us = test_deadline ()};

  add_variable (b, "v", 4);
  muster_graph_builder_variable (b, "rows", two);
  muster_graph_builder_constant (b, "place", place);
  muster_graph_builder_constant (b, "row", one);
  add_constant (b, "hundred", 100);
  if (g_str_equal (op, "AssignAdd")) {
    add_binary (b, op, "early", "v", "hundred");
  } else {
    muster_graph_builder_node (b, op, "early");
    muster_graph_builder_input (b, "rows");
    muster_graph_builder_input (b, "place");
    muster_graph_builder_input (b, "row");
    muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
    muster_graph_builder_attr_type (b, "Tindices", MUSTER_INT32);
  }
  muster_graph_builder_node (b, between, "between");
  muster_graph_builder_input (b, "^early");
  add_binary (b, "AssignAdd", "late", "v", "hundred");
  muster_graph_builder_input (b, "^between");
  MusterSession *session = open_session (NULL, b);
  MUSTER_EXPECT_TRUE (muster_session_run (session, &init, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

static void
wait_until_computing (void)
{
  const gint64 end_us = test_deadline ();
  g_mutex_lock (&lock);
  while (!gate.is_computing && g_cond_wait_until (&changed, &lock, end_us))
    ;
  g_mutex_unlock (&lock);
}

static void
release (void)
{
  g_mutex_lock (&lock);
  gate.is_released = TRUE;
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
}

MUSTER_TEST (Executor, ends_a_step_that_has_changed_a_variable)
{
  static const char *const writers[] = {"AssignAdd", "ScatterNdUpdate"};
  for (gsize i = 0; i < G_N_ELEMENTS (writers); i++) {
    g_autoptr (MusterSession) session = open_writing (writers[i], "TestCompute");
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    Job job = {.session = session,
               .fetch = "late",
               .deadline_us = test_deadline (),
               .cancellable = cancellable};

    GThread *thread = g_thread_new ("step", do_job, &job);
    wait_until_computing ();
    g_cancellable_cancel (cancellable);
    release ();
    g_thread_join (thread);
    MUSTER_EXPECT_NO_ERROR (job.error);
    MUSTER_EXPECT_EQ (job.value, i == 0 ? 204.0f : 104.0f);
  }
}

/* By then the next chief prepares the model. */
MUSTER_TEST (Executor, writes_nothing_more_once_a_close_has_waited_for_long_enough)
{
  g_autoptr (MusterSession) session = open_writing ("AssignAdd", "TestCompute");
  Job job = {.session = session, .fetch = "late", .deadline_us = test_deadline ()};
  GThread *thread = g_thread_new ("step", do_job, &job);
  wait_until_computing ();
  muster_session_close_quietly (session);
  release ();
  g_thread_join (thread);
  EXPECT_SAYS (job.error, MUSTER_ERROR_CANCELLED,
               "Step was cancelled by an explicit call to `Session::Close()`.");
  g_clear_error (&job.error);
}

MUSTER_TEST (Executor, gives_the_reason_for_a_stop_after_a_change_too)
{
  g_autoptr (MusterSession) session = open_writing ("AssignAdd", "TestGate");
  Job job = {.session = session, .fetch = "late", .deadline_us = test_deadline ()};
  GThread *thread = g_thread_new ("step", do_job, &job);
  wait_until_suspended ();
  MUSTER_EXPECT_TRUE (muster_session_close (session, MUSTER_WAIT_FOREVER, NULL, NULL));
  g_thread_join (thread);
  EXPECT_SAYS (job.error, MUSTER_ERROR_CANCELLED,
               "Step was cancelled by an explicit call to `Session::Close()`.");
  g_clear_error (&job.error);
}

MUSTER_TEST (Executor, a_reset_stops_a_suspended_step)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = open_gated (master);
  Job job = {.session = session, .fetch = "sum", .deadline_us = test_deadline ()};
  GThread *thread = g_thread_new ("step", do_job, &job);
  wait_until_suspended ();
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, MUSTER_WAIT_FOREVER, NULL, NULL));
  g_thread_join (thread);

  EXPECT_SAYS (job.error, MUSTER_ERROR_ABORTED, "reset");
  g_clear_error (&job.error);
}

MUSTER_TEST (Executor, can_run_the_same_step_again_after_a_stop)
{
  g_autoptr (MusterSession) session = open_gated (NULL);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  Job late = {.session = session, .fetch = "sum", .deadline_us = now_us + 5 * MUSTER_MILLISECOND};
  Job job = {.session = session, .fetch = "sum", .deadline_us = test_deadline ()};
  do_job (&late);
  g_clear_error (&late.error);

  GThread *thread = g_thread_new ("step", do_job, &job);
  wait_until_suspended ();
  open_gate (1);
  g_thread_join (thread);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (job.value, 2.0f);
}

MUSTER_TEST (Executor, ends_a_step_whose_output_cannot_be_had)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_gated (NULL);
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "TooMuch", &error);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "OOM when allocating tensor");
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "[[{{node TooMuch}}]]");
}

MUSTER_TEST (Executor, trusts_no_kernel_about_its_outputs)
{
  g_autoptr (GError) lied = NULL;
  g_autoptr (GError) forgot = NULL;
  g_autoptr (MusterSession) session = open_gated (NULL);
  g_autoptr (MusterTensor) wrong = run_one (session, NULL, NULL, "Lie", &lied);
  g_autoptr (MusterTensor) none = run_one (session, NULL, NULL, "Forget", &forgot);
  EXPECT_SAYS (lied, MUSTER_ERROR_INTERNAL,
               "Output 0 of type int32 does not match declared output type float");
  EXPECT_SAYS (forgot, MUSTER_ERROR_INTERNAL, "Output 0 of type nothing does not match");
}

typedef struct {
  MusterSession *session;
  gint bad;
} Crowd;

static gpointer
run_many (gpointer data)
{
  Crowd *crowd = data;
  for (int i = 0; i < 200; i++) {
    g_autoptr (MusterTensor) x = muster_tensor_new_float ((float)i);
    g_autoptr (MusterTensor) y = run_one (crowd->session, "x", x, "y", NULL);
    if (float_of (y) != (float)i + 2 ||
        !muster_session_run_op (crowd->session, "up", MUSTER_WAIT_FOREVER, NULL, NULL))
      g_atomic_int_inc (&crowd->bad);
  }
  return NULL;
}

MUSTER_TEST (Executor, runs_steps_of_64_threads_at_once)
{
  GThread *threads[64];
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  add_constant (b, "two", 2);
  add_constant (b, "one", 1);
  add_binary (b, "AddV2", "y", "x", "two");
  add_variable (b, "v", 0);
  add_binary (b, "AssignAdd", "up", "v", "one");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  Crowd crowd = {.session = session};
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "v/Assign", MUSTER_WAIT_FOREVER, NULL, NULL));

  for (int i = 0; i < 64; i++)
    threads[i] = g_thread_new ("worker", run_many, &crowd);
  for (int i = 0; i < 64; i++)
    g_thread_join (threads[i]);

  MUSTER_EXPECT_EQ (crowd.bad, 0);
  MUSTER_EXPECT_EQ (fetch_float (session, "v"), 64 * 200.0f);
}

/* From TensorFlow 2.21: RandomUniform, shape [6], seed 1, seed2 2, its first and second step. */
static const float first_uniforms[] = {0.40639675f, 0.8575996f, 0.05539584f,
                                       0.08587229f, 0.4121536f, 0.03663087f};
static const float second_uniforms[] = {0.49945498f, 0.06284702f, 0.46006584f,
                                        0.20280075f, 0.08863032f, 0.9726002f};

MUSTER_TEST (Executor, draws_TensorFlows_random_numbers)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_random (b, "r", 1, 2);
  g_autoptr (MusterSession) session = open_session (NULL, b);

  g_autoptr (MusterTensor) first = run_one (session, NULL, NULL, "r", &error);
  g_autoptr (MusterTensor) second = run_one (session, NULL, NULL, "r", &error);

  MUSTER_ASSERT_NO_ERROR (error);
  for (int i = 0; i < 6; i++) {
    MUSTER_EXPECT_NEAR (((const float *)muster_tensor_data (first))[i], first_uniforms[i], 1e-7);
    MUSTER_EXPECT_NEAR (((const float *)muster_tensor_data (second))[i], second_uniforms[i], 1e-7);
  }
}

MUSTER_TEST (Registry, keeps_an_op_that_was_registered_before_the_engines_own)
{
  static const MusterOp given[] = {{"MusterGiven", " -> ", "", NULL, 0}, {0}};
  static const MusterOp own[] = {
      {"MusterGiven", " -> ", "", NULL, 0}, {"MusterOwn", " -> ", "", NULL, 0}, {0}};
  MUSTER_EXPECT_NULL (muster_op_find_entry ("MusterGiven"));
  muster_op_register (given);
  muster_op_register_default (own);
  MUSTER_EXPECT_TRUE (muster_op_find_entry ("MusterGiven")->op == &given[0]);
  MUSTER_EXPECT_TRUE (muster_op_find_entry ("MusterOwn")->op == &own[1]);
  muster_op_register (own);
  MUSTER_EXPECT_TRUE (muster_op_find_entry ("MusterGiven")->op == &own[0]);
}
