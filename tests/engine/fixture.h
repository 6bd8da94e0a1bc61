// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "engine/run/kernel.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* A session of that graph on a master, NULL: a new one. It fails the test if that isn't possible.
 */
static inline MusterSession *
open_session (MusterMaster *master, MusterGraphBuilder *builder)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) own =
      master == NULL ? muster_local_master_new () : g_object_ref (master);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MusterSession *session =
      muster_master_create_session (own, graph, NULL, test_deadline (), NULL, &error);
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
                           .deadline_us = test_deadline ()};
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

/* Six uniform floats; seeds of 0: different ones in each session. */
static inline void
add_random (MusterGraphBuilder *b, const char *name, gint64 seed, gint64 seed2)
{
  const gint32 six = 6;
  g_autoptr (MusterTensor) shape =
      muster_tensor_new_from_data (MUSTER_INT32, 1, (gint64[]){1}, &six, sizeof six, NULL);
  muster_graph_builder_constant (b, "shape", shape);
  muster_graph_builder_node (b, "RandomUniform", name);
  muster_graph_builder_input (b, "shape");
  muster_graph_builder_attr_type (b, "T", MUSTER_INT32);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_int (b, "seed", seed);
  muster_graph_builder_attr_int (b, "seed2", seed2);
}

#define EXPECT_SAYS(error, code, text) MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, text)
