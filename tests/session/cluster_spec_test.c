// SPDX-License-Identifier: Apache-2.0
/* A cluster as TF_CONFIG tells of it; what TensorFlow reads from the same text is compared in
 * tests/tensorflow/cluster_config_test.py. */
#include "session/cluster/cluster_spec.h"

#include "base/unpack_private.h"
#include "rpc/proto/cluster.pb-c.h"
#include "rpc/proto/master.pb-c.h"
#include "session/cluster/cluster_spec_private.h"
#include "tests/gtest_shim.h"

#define TWO                                                                                        \
  "{\"cluster\": {\"ps\": [\"p:1\"], \"chief\": [\"c:1\"], \"worker\": [\"w:1\", \"w:2\"]}, "

static MusterClusterSpec *
read_spec (const char *text)
{
  g_autoptr (GError) error = NULL;
  MusterClusterSpec *self = muster_cluster_spec_new (text, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return self;
}

static MusterClusterSpec *
read_task (const char *task)
{
  g_autofree char *text = g_strconcat (TWO, task, "}", NULL);
  return read_spec (text);
}

static void
expect_target (const char *text, const char *wanted)
{
  g_autoptr (MusterClusterSpec) spec = read_spec (text);
  g_autoptr (GError) error = NULL;
  g_autofree char *target = spec != NULL ? muster_cluster_spec_target (spec, &error) : NULL;

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (target, wanted);
}

static void
expect_filters (const char *task, const char *wanted)
{
  g_autoptr (MusterClusterSpec) spec = read_task (task);
  g_auto (GStrv) filters = muster_cluster_spec_device_filters (spec);
  g_autofree char *joined = filters != NULL ? g_strjoinv (" ", filters) : NULL;

  MUSTER_EXPECT_STREQ (joined, wanted);
}

static void
expect_peers (const char *task, const char *wanted)
{
  g_autoptr (MusterClusterSpec) spec = read_task (task);
  g_auto (GStrv) peers = muster_cluster_spec_peers (spec);
  g_autofree char *joined = g_strjoinv (" ", peers);

  MUSTER_EXPECT_STREQ (joined, wanted);
}

static void
expect_chief (const char *text, const char *wanted)
{
  g_autoptr (MusterClusterSpec) spec = read_spec (text);
  g_autofree char *chief = muster_cluster_spec_chief (spec);

  MUSTER_EXPECT_STREQ (chief, wanted);
}

static void
expect_refusal (const char *text, const char *words)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterClusterSpec) spec = muster_cluster_spec_new (text, &error);
  MUSTER_EXPECT_TRUE (spec == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (error->message, "TF_CONFIG"));
  MUSTER_EXPECT_TRUE (g_utf8_validate (error->message, -1, NULL));
  if (strstr (error->message, words) == NULL)
    MUSTER_EXPECT_STREQ (error->message, words);
}

MUSTER_TEST (ClusterSpec, says_which_tasks_there_are_and_where)
{
  g_autoptr (MusterClusterSpec) spec = read_task ("\"task\": {\"type\": \"worker\", \"index\": 1}");
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (spec, &n);
  MUSTER_ASSERT_EQ (n, 4);
  MUSTER_EXPECT_STREQ (tasks[0].job, "ps");
  MUSTER_EXPECT_STREQ (tasks[3].address, "w:2");
  MUSTER_EXPECT_EQ (tasks[3].index, 1);
  MUSTER_EXPECT_STREQ (muster_cluster_spec_job (spec), "worker");
  MUSTER_EXPECT_EQ (muster_cluster_spec_index (spec), 1);
  MUSTER_EXPECT_EQ (muster_cluster_spec_n_tasks (spec, "worker"), 2);
  MUSTER_EXPECT_TRUE (muster_cluster_spec_find (spec, "worker", 2) == NULL);
}

MUSTER_TEST (ClusterSpec, takes_jobs_of_which_not_every_task_is_known)
{
  g_autoptr (MusterClusterSpec) spec =
      read_spec ("{\"cluster\": {\"worker\": {\"7\": \"w:7\", \"2\": \"w:2\", \"10\": \"w:10\"}}, "
                 "\"task\": {\"type\": \"worker\", \"index\": \"10\"}}");
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (spec, &n);

  MUSTER_ASSERT_EQ (n, 3);
  MUSTER_EXPECT_EQ (tasks[0].index, 2);
  MUSTER_EXPECT_EQ (tasks[1].index, 7);
  MUSTER_EXPECT_EQ (tasks[2].index, 10);
  MUSTER_EXPECT_EQ (muster_cluster_spec_trainer (spec), 2);
}

MUSTER_TEST (ClusterSpec, numbers_the_tasks_that_train)
{
  static const struct {
    const char *task;
    int number;
  } cases[] = {{"\"task\": {\"type\": \"chief\", \"index\": 0}", 0},
               {"\"task\": {\"type\": \"chief\"}", 0},
               {"\"task\": {\"type\": \"worker\", \"index\": 0}", 1},
               {"\"task\": {\"type\": \"worker\", \"index\": 1}", 2},
               {"\"task\": {\"type\": \"ps\", \"index\": 0}", -1},
               {"\"task\": {\"type\": \"evaluator\", \"index\": 3}", -1},
               {"\"environment\": \"cloud\"", -1}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterClusterSpec) spec = read_task (cases[i].task);
    MUSTER_EXPECT_EQ (muster_cluster_spec_trainer (spec), cases[i].number);
    MUSTER_EXPECT_EQ (muster_cluster_spec_is_chief (spec), cases[i].number == 0);
    MUSTER_EXPECT_EQ (muster_cluster_spec_n_trainers (spec), 3);
    MUSTER_EXPECT_TRUE (muster_cluster_spec_has_own_masters (spec));
  }
}

static char *
gateway_of (const char *text)
{
  g_autoptr (MusterClusterSpec) spec = read_spec (text);
  return muster_cluster_spec_gateway (spec);
}

MUSTER_TEST (ClusterSpec, gives_each_task_of_each_cluster_a_gateway_of_its_own)
{
  const char *const texts[] = {
      TWO "\"task\": {\"type\": \"ps\", \"index\": 0}}",
      TWO "\"task\": {\"type\": \"worker\", \"index\": 0}}",
      "{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:1\"]}, \"task\": {\"type\": \"ps\", "
      "\"index\": 0}}",
      "{\"cluster\": {\"ps\": [\"b:1\"], \"worker\": [\"a:1\"]}, \"task\": {\"type\": \"ps\", "
      "\"index\": 0}}",
  };
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    MUSTER_EXPECT_TRUE (g_hash_table_add (seen, gateway_of (texts[i])));
}

MUSTER_TEST (ClusterSpec, gives_the_same_gateway_in_whichever_order_the_jobs_stand)
{
  g_autofree char *one = gateway_of ("{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:1\"]}, "
                                     "\"task\": {\"type\": \"worker\", \"index\": 0}}");
  g_autofree char *other = gateway_of ("{\"task\": {\"index\": 0, \"type\": \"worker\"}, "
                                       "\"cluster\": {\"worker\": [\"b:1\"], \"ps\": [\"a:1\"]}}");

  MUSTER_EXPECT_STREQ (one, other);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (one, "unix:/tmp/muster-"));
}

MUSTER_TEST (ClusterSpec, has_no_gateway_for_a_process_that_is_no_task)
{
  MUSTER_EXPECT_STREQ (gateway_of (TWO "\"environment\": \"cloud\"}"), NULL);
  MUSTER_EXPECT_STREQ (gateway_of (TWO "\"task\": {\"type\": \"evaluator\", \"index\": 0}}"), NULL);
}

MUSTER_TEST (ClusterSpec, has_a_chief_also_where_none_is_called_so)
{
  g_autoptr (MusterClusterSpec) first = read_spec (
      "{\"cluster\": {\"worker\": [\"w:1\", \"w:2\"]}, \"task\": {\"type\": \"worker\"}}");
  g_autoptr (MusterClusterSpec) master =
      read_spec ("{\"cluster\": {\"master\": [\"m:1\"], \"worker\": [\"w:1\"]}, "
                 "\"task\": {\"type\": \"master\"}}");

  MUSTER_EXPECT_TRUE (muster_cluster_spec_is_chief (first));
  MUSTER_EXPECT_EQ (muster_cluster_spec_n_trainers (first), 2);
  MUSTER_EXPECT_TRUE (muster_cluster_spec_is_chief (master));
  MUSTER_EXPECT_EQ (muster_cluster_spec_n_trainers (master), 2);
}

MUSTER_TEST (ClusterSpec, finds_the_tasks_own_master)
{
  expect_target (TWO "\"task\": {\"type\": \"worker\", \"index\": 1}}", "grpc://w:2");
  expect_target (TWO "\"rpc_layer\": \"grpc\", \"task\": {\"type\": \"chief\"}}", "grpc://c:1");
  expect_target (TWO "\"session_master\": \"grpc://x:1\", \"task\": {\"type\": \"chief\"}}",
                 "grpc://x:1");
  expect_target (TWO "\"session_master\": \"x:1\"}", "grpc://x:1");
  expect_target ("{\"session_master\": \"local\"}", "local");
  expect_target ("{\"cluster\": {\"chief\": [\"c:1\"]}, \"task\": {\"type\": \"chief\"}}", "local");
}

MUSTER_TEST (ClusterSpec, names_the_chief_whose_master_is_another)
{
  expect_chief (TWO "\"task\": {\"type\": \"worker\", \"index\": 1}}", "chief:0=c:1");
  expect_chief (TWO "\"task\": {\"type\": \"ps\", \"index\": 0}}", "chief:0=c:1");
  expect_chief ("{\"cluster\": {\"worker\": {\"2\": \"b:1\", \"1\": \"a:1\"}}, "
                "\"task\": {\"type\": \"worker\", \"index\": 2}}",
                "worker:1=a:1");
  expect_chief (TWO "\"task\": {\"type\": \"chief\"}}", NULL);
  expect_chief (TWO "\"session_master\": \"x:1\", \"task\": {\"type\": \"worker\"}}", NULL);
  expect_chief ("", NULL);
}

MUSTER_TEST (ClusterSpec, says_why_it_knows_no_master)
{
  static const char *const cases[][2] = {
      {TWO "\"environment\": \"cloud\"}", "names no task"},
      {TWO "\"task\": {\"type\": \"evaluator\"}}", "evaluator:0 has no server in \"cluster\""}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterClusterSpec) spec = read_spec (cases[i][0]);
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_TRUE (muster_cluster_spec_target (spec, &error) == NULL);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (strstr (error->message, cases[i][1]) != NULL);
  }
}

MUSTER_TEST (ClusterSpec, keeps_a_session_to_the_parameter_servers_and_its_own_task)
{
  expect_filters ("\"task\": {\"type\": \"chief\"}", "/job:ps /job:chief/task:0");
  expect_filters ("\"task\": {\"type\": \"worker\", \"index\": 1}", "/job:ps /job:worker/task:1");
  expect_filters ("\"task\": {\"type\": \"ps\"}", "/job:ps /job:worker /job:chief /job:master");
  expect_filters ("\"task\": {\"type\": \"evaluator\"}", NULL);
  expect_filters ("\"environment\": \"cloud\"", NULL);
}

MUSTER_TEST (ClusterSpec, waits_for_those_alone)
{
  expect_peers ("\"task\": {\"type\": \"worker\", \"index\": 1}", "ps:0=p:1");
  expect_peers ("\"task\": {\"type\": \"ps\"}", "chief:0=c:1 worker:0=w:1 worker:1=w:2");
  expect_peers ("\"environment\": \"cloud\"", "ps:0=p:1 chief:0=c:1 worker:0=w:1 worker:1=w:2");
}

MUSTER_TEST (ClusterSpec, leaves_all_devices_where_nothing_serves_parameters)
{
  g_autoptr (MusterClusterSpec) spec = read_spec (
      "{\"cluster\": {\"worker\": [\"w:1\", \"w:2\"]}, \"task\": {\"type\": \"worker\"}}");
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_cluster_spec_device_filters (spec) == NULL);
  MUSTER_EXPECT_TRUE (muster_cluster_spec_config (spec, NULL, &error) == NULL);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
expect_config (GBytes *given, const char *wanted, gboolean isolated)
{
  g_autoptr (MusterClusterSpec) spec = read_task ("\"task\": {\"type\": \"chief\"}");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GBytes) config = muster_cluster_spec_config (spec, given, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const Tensorflow__ConfigProto *message =
      muster_unpack (&tensorflow__config_proto__descriptor, g_bytes_get_data (config, NULL),
                     g_bytes_get_size (config), arena, "config", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (message->n_device_filters > 0);
  MUSTER_EXPECT_STREQ (message->device_filters[0], wanted);
  MUSTER_EXPECT_EQ (message->isolate_session_state, isolated);
}

MUSTER_TEST (ClusterSpec, adds_its_filters_to_a_config_that_has_none)
{
  Tensorflow__ConfigProto own = TENSORFLOW__CONFIG_PROTO__INIT;
  char *filters[] = {"/job:own"};
  own.isolate_session_state = TRUE;
  g_autoptr (GBytes) without = muster_pack (&own.base);
  own.device_filters = filters;
  own.n_device_filters = 1;
  g_autoptr (GBytes) with = muster_pack (&own.base);

  expect_config (NULL, "/job:ps", FALSE);
  expect_config (without, "/job:ps", TRUE);
  expect_config (with, "/job:own", TRUE);
}

/* --- a worker outside the cluster --- */

static MusterClusterSpec *
read_outside (const char *task)
{
  g_autoptr (GError) error = NULL;
  MusterClusterSpec *self = muster_cluster_spec_new_for_task (
      TWO "\"admit\": [\"others.digits\", \"10.0.0.9\"]}", task, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return self;
}

MUSTER_TEST (ClusterSpec, takes_a_worker_that_brings_its_own_address)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterClusterSpec) spec = read_outside ("worker:5=x:9");
  g_autofree char *target = muster_cluster_spec_target (spec, &error);
  g_auto (GStrv) peers = muster_cluster_spec_peers (spec);
  g_autofree char *gateway = muster_cluster_spec_gateway (spec);

  MUSTER_EXPECT_TRUE (muster_cluster_spec_is_outside (spec));
  MUSTER_EXPECT_STREQ (target, "grpc://x:9");
  MUSTER_EXPECT_EQ (muster_cluster_spec_trainer (spec), 6);
  MUSTER_EXPECT_TRUE (muster_cluster_spec_has_own_masters (spec));
  MUSTER_EXPECT_TRUE (gateway != NULL);
  MUSTER_EXPECT_EQ (g_strv_length (peers), 1);
  MUSTER_EXPECT_STREQ (peers[0], "ps:0=p:1");
}

MUSTER_TEST (ClusterSpec, tells_the_parameter_servers_of_a_worker_outside)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (MusterClusterSpec) spec = read_outside ("worker:5=x:9");
  g_autoptr (GBytes) config = muster_cluster_spec_config (spec, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const Tensorflow__ConfigProto *message =
      muster_unpack (&tensorflow__config_proto__descriptor, g_bytes_get_data (config, NULL),
                     g_bytes_get_size (config), arena, "config", &error);
  const Tensorflow__ClusterDef *cluster =
      muster_unpack (&tensorflow__cluster_def__descriptor, message->cluster_def.data,
                     message->cluster_def.len, arena, "cluster", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (cluster->n_job, 2);
  MUSTER_EXPECT_STREQ (cluster->job[0]->name, "ps");
  MUSTER_EXPECT_STREQ (cluster->job[0]->tasks[0]->value, "p:1");
  MUSTER_EXPECT_STREQ (cluster->job[1]->name, "outside"); /* before "ps", by name */
  MUSTER_ASSERT_EQ (cluster->job[1]->n_tasks, 1);
  MUSTER_EXPECT_EQ (cluster->job[1]->tasks[0]->key, 5);
  MUSTER_EXPECT_STREQ (cluster->job[1]->tasks[0]->value, "x:9");
  MUSTER_ASSERT_EQ (message->n_device_filters, 2);
  MUSTER_EXPECT_STREQ (message->device_filters[1], "/job:outside/task:5");
  MUSTER_EXPECT_TRUE (message->experimental->share_session_state_in_clusterspec_propagation);
}

MUSTER_TEST (ClusterSpec, has_no_worker_outside_whose_address_it_knows)
{
  g_autoptr (MusterClusterSpec) spec = read_outside ("worker:1=w:2");
  gsize n;
  (void)muster_cluster_spec_tasks (spec, &n);
  MUSTER_EXPECT_FALSE (muster_cluster_spec_is_outside (spec));
  MUSTER_EXPECT_EQ (n, 4);
}

MUSTER_TEST (ClusterSpec, refuses_a_task_outside_that_is_not_a_new_worker)
{
  static const struct {
    const char *task, *words;
  } cases[] = {{"worker:1=w:3", "is at 'w:2' in \"cluster\", not at 'w:3'"},
               {"ps:1=p:2", "only a worker may be outside"},
               {"worker:5=x", "x"},
               {"=x:1", "invalid task '=x:1' of a cluster"}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterClusterSpec) spec =
        muster_cluster_spec_new_for_task (TWO "\"rpc_layer\": \"grpc\"}", cases[i].task, &error);
    MUSTER_ASSERT_TRUE (error != NULL);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    if (strstr (error->message, cases[i].words) == NULL)
      MUSTER_EXPECT_STREQ (error->message, cases[i].words);
  }
}

MUSTER_TEST (ClusterSpec, knows_the_machines_that_workers_outside_are_on)
{
  g_autoptr (MusterClusterSpec) spec = read_outside ("ps:0");
  const GPtrArray *admitted = muster_cluster_spec_admitted (spec);
  MUSTER_ASSERT_EQ (admitted->len, 2);
  MUSTER_EXPECT_STREQ (g_ptr_array_index (admitted, 0), "others.digits");
  expect_refusal ("{\"admit\": \"a\"}", "must be a list of machines' names");
  expect_refusal ("{\"admit\": [\"a:1\"]}", "must be a list of machines' names");
}

MUSTER_TEST (ClusterSpec, refuses_a_config_that_is_none)
{
  g_autoptr (MusterClusterSpec) spec = read_task ("\"task\": {\"type\": \"chief\"}");
  g_autoptr (GBytes) broken = g_bytes_new_static ("\x22\x7f", 2);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_cluster_spec_config (spec, broken, &error) == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (ClusterSpec, is_empty_without_a_word)
{
  static const char *const nothing[] = {NULL, "", "{}", "{\"environment\": \"cloud\"}"};
  for (gsize i = 0; i < G_N_ELEMENTS (nothing); i++) {
    g_autoptr (MusterClusterSpec) spec = read_spec (nothing[i]);
    MUSTER_EXPECT_TRUE (muster_cluster_spec_is_empty (spec));
    MUSTER_EXPECT_FALSE (muster_cluster_spec_has_own_masters (spec));
  }
}

MUSTER_TEST (ClusterSpec, refuses_what_contradicts_itself)
{
  expect_refusal ("\xff", "isn't UTF-8");
  /* an escape that makes half a character */
  expect_refusal ("{\"cluster\": {\"\\66666\": [\"a:1\"], \"worker\": \"1\"}}", "invalid job name");
  expect_refusal ("[]", "must be one JSON object");
  expect_refusal ("{} {}", "must be one JSON object");
  expect_refusal ("{", "isn't valid JSON");
  expect_refusal ("{\"a\": [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}", "nested deeper");
  expect_refusal ("{\"cluster\": []}", "\"cluster\" must be an object");
  expect_refusal ("{\"cluster\": {\"worker\": \"w:1\"}}", "must be a list of \"HOST:PORT\"");
  expect_refusal ("{\"cluster\": {\"worker\": [1]}}", "must be a list of \"HOST:PORT\"");
  expect_refusal ("{\"cluster\": {\"worker\": [\"w\"]}}", "worker:0 in \"cluster\": ");
  expect_refusal ("{\"cluster\": {\"worker\": {\"one\": \"w:1\"}}}", "'one' isn't a task index");
  expect_refusal ("{\"cluster\": {\"worker\": {\"1\": \"w:1\", \"01\": \"w:2\"}}}", "twice");
  expect_refusal ("{\"cluster\": {\"a/b\": [\"w:1\"]}}", "invalid job name 'a/b'");
  expect_refusal ("{\"cluster\": {\"chief\": [\"c:1\", \"c:2\"]}}", "has 2 chiefs");
  expect_refusal ("{\"task\": 1}", "\"task\" must be an object");
  expect_refusal ("{\"task\": {\"index\": 1}}", "has no \"type\"");
  expect_refusal (TWO "\"task\": {\"type\": \"worker\", \"index\": -1}}", "isn't a task index");
  expect_refusal (TWO "\"task\": {\"type\": \"worker\", \"index\": 1e99}}", "isn't a task index");
  expect_refusal (TWO "\"task\": {\"type\": \"worker\", \"index\": 2}}", "has 2 such tasks");
  expect_refusal ("{\"session_master\": 1}", "\"session_master\" must be a string");
  expect_refusal ("{\"rpc_layer\": \"grpc+verbs\"}", "unsupported \"rpc_layer\" 'grpc+verbs'");
}
