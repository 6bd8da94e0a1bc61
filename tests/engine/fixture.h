// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "engine/run/kernel.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* Nothing in these tests may take longer. */
#define TEST_DEADLINE_US                                                                           \
  muster_deadline_after (muster_clock_now_us (muster_system_clock ()), 30 * MUSTER_SECOND)

/* A session over what was built, or a failure. */
static inline MusterSession *
open_session (MusterMaster *master, MusterGraphBuilder *builder)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MusterSession *session =
      muster_master_create_session (master, graph, NULL, TEST_DEADLINE_US, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

/* Feeds one tensor (or none: NULL) and fetches one. */
static inline MusterTensor *
run_one (MusterSession *session, const char *feed, MusterTensor *value, const char *fetch,
         GError **error)
{
  const MusterFeed feeds[] = {{feed, value}};
  const MusterStep step = {.feeds = feeds,
                           .n_feeds = feed != NULL ? 1 : 0,
                           .fetches = &fetch,
                           .n_fetches = 1,
                           .deadline_us = TEST_DEADLINE_US};
  MusterTensor *fetched = NULL;
  return muster_session_run (session, &step, &fetched, NULL, NULL, error) ? fetched : NULL;
}

static inline float
float_of (MusterTensor *tensor)
{
  if (tensor == NULL || muster_tensor_dtype (tensor) != MUSTER_FLOAT)
    return -12345;
  return ((const float *)muster_tensor_data (tensor))[0];
}

/* Fetches a float, failing the test where that doesn't work. */
static inline float
fetch_float (MusterSession *session, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor = run_one (session, NULL, NULL, name, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return float_of (tensor);
}

static inline void
add_constant (MusterGraphBuilder *builder, const char *name, float value)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (value);
  muster_graph_builder_constant (builder, name, tensor);
}

static inline void
add_unary (MusterGraphBuilder *builder, const char *op, const char *name, const char *x)
{
  muster_graph_builder_node (builder, op, name);
  muster_graph_builder_input (builder, x);
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
}

static inline void
add_binary (MusterGraphBuilder *builder, const char *op, const char *name, const char *x,
            const char *y)
{
  muster_graph_builder_node (builder, op, name);
  muster_graph_builder_input (builder, x);
  muster_graph_builder_input (builder, y);
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
}

static inline void
add_variable (MusterGraphBuilder *builder, const char *name, float initial)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (initial);
  muster_graph_builder_variable (builder, name, tensor);
}

/* The error is MUSTER_ERROR with that code and says all of that. */
#define EXPECT_SAYS(error, code, text)                                                             \
  do {                                                                                             \
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);                                               \
    if ((error) != NULL && strstr ((error)->message, text) == NULL)                                \
      MUSTER_FAIL ("'%s' doesn't say '%s'", (error)->message, text);                               \
  } while (0)
