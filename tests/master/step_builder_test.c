// SPDX-License-Identifier: Apache-2.0
#include "master/step_builder.h"

#include "tests/doubles/fake_master.h"
#include "tests/gtest_shim.h"

static gint32
value_of (MusterTensor *tensor)
{
  return *(const gint32 *)muster_tensor_data (tensor);
}

MUSTER_TEST (StepBuilder, gives_what_was_fetched_in_the_order_of_asking)
{
  g_auto (MusterFakeSetup) it = muster_fake_setup_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  g_autoptr (MusterTensor) two = muster_tensor_new_int32 (2);
  g_autoptr (MusterStepBuilder) builder = muster_step_builder_new ();
  muster_fake_master_op_yields (it.master, "a", one);
  muster_fake_master_op_yields (it.master, "b", two);
  muster_fake_master_op_yields (it.master, "train", NULL);

  MUSTER_EXPECT_EQ (muster_step_builder_fetch (builder, "b:0"), 0u);
  MUSTER_EXPECT_EQ (muster_step_builder_fetch (builder, "a:0"), 1u);
  muster_step_builder_target (builder, "train");
  g_autoptr (GPtrArray) values =
      muster_step_builder_run (builder, it.session, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (values->len, 2u);
  MUSTER_EXPECT_EQ (value_of (g_ptr_array_index (values, 0)), 2);
  MUSTER_EXPECT_EQ (value_of (g_ptr_array_index (values, 1)), 1);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (it.master, "train"), 1u);
}

MUSTER_TEST (StepBuilder, feeds_the_last_value_of_each_name)
{
  g_auto (MusterFakeSetup) it = muster_fake_setup_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  g_autoptr (MusterTensor) two = muster_tensor_new_int32 (2);
  g_autoptr (MusterStepBuilder) builder = muster_step_builder_new ();
  muster_fake_master_op_yields (it.master, "train", NULL);

  muster_step_builder_target (builder, "train");
  muster_step_builder_feed (builder, "x:0", one);
  muster_step_builder_feed (builder, "y:0", one);
  muster_step_builder_feed (builder, "x:0", two);
  g_autoptr (GPtrArray) values =
      muster_step_builder_run (builder, it.session, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (values->len, 0u);
  MUSTER_EXPECT_EQ (muster_step_builder_step (builder).n_feeds, 2u);
  MUSTER_EXPECT_EQ (value_of (muster_fake_master_fed (it.master, "x")), 2);
  MUSTER_EXPECT_EQ (value_of (muster_fake_master_fed (it.master, "y")), 1);
}

MUSTER_TEST (StepBuilder, hands_out_what_a_step_failed_with)
{
  g_auto (MusterFakeSetup) it = muster_fake_setup_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStepBuilder) builder = muster_step_builder_new ();
  muster_step_builder_fetch (builder, "unheard-of:0");
  MUSTER_EXPECT_NULL (
      muster_step_builder_run (builder, it.session, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}
