// SPDX-License-Identifier: Apache-2.0
#include "graph/device_name_private.h"

#include "tests/gtest_shim.h"

MUSTER_TEST (DeviceName, has_the_parts_that_it_names)
{
  MusterDeviceName all, none;
  const char *text = "/job:worker_1/replica:2/task:13/device:XLA_GPU:4";
  MUSTER_ASSERT_TRUE (muster_device_name_parse (text, &all));
  MUSTER_ASSERT_TRUE (muster_device_name_parse ("/job:*/replica:*/task:*/device:*:*", &none));
  MUSTER_EXPECT_MEMEQ (all.job, all.job_size, "worker_1", strlen ("worker_1"));
  MUSTER_EXPECT_EQ (all.replica, 2);
  MUSTER_EXPECT_EQ (all.task, 13);
  MUSTER_EXPECT_STREQ (all.type, "XLA_GPU");
  MUSTER_EXPECT_EQ (all.id, 4);
  MUSTER_EXPECT_NULL (none.job);
  MUSTER_EXPECT_EQ (none.replica, -1);
  MUSTER_EXPECT_EQ (none.task, -1);
  MUSTER_EXPECT_STREQ (none.type, "");
  MUSTER_EXPECT_EQ (none.id, -1);
}

MUSTER_TEST (DeviceName, is_refused_where_tensorflow_refuses_it)
{
  static const char *const bad[] = {
      "cpu:0",    "/job:", "/job:1x",  "/job:a-b",    "/job:ps/b", "/device:CPU:x",    "/task:",
      "/device:", "//",    "/job:ps/", "/task:1/x:0", "/tpu:0",    "/task:12345678901"};
  MusterDeviceName name;
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    MUSTER_TRACE ("%s", bad[i]);
    MUSTER_EXPECT_FALSE (muster_device_name_parse (bad[i], &name));
  }
}

MUSTER_TEST (DeviceName, is_printed_as_tensorflow_compares_it)
{
  const struct {
    const char *text, *canonical, *cpu, *task, *of_any;
  } cases[] = {
      {"", "", "/device:CPU:0", NULL, ""},
      {"/", "", "/device:CPU:0", NULL, ""},
      {"/job:ps", "/job:ps", "/job:ps/device:CPU:0", "ps", ""},
      {"/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1/device:CPU:0", "ps:1", ""},
      {"/job:ps/task:0/cpu:0", "/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0", "ps:0",
       "/device:CPU:0"},
      {"/task:3/job:w/replica:0/gpu:1", "/job:w/replica:0/task:3/device:GPU:1",
       "/job:w/replica:0/task:3/device:CPU:0", "w:3", "/device:GPU:1"},
      {"/device:gpu:*", "/device:GPU:*", "/device:CPU:0", NULL, "/device:GPU:*"},
      {"no device", "no device", "no device", NULL, "no device"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *canonical = muster_device_canonical (cases[i].text);
    g_autofree char *cpu = muster_device_cpu (cases[i].text);
    g_autofree char *task = muster_device_task (cases[i].text);
    g_autofree char *of_any = muster_device_of_any_task (cases[i].text);
    MUSTER_EXPECT_STREQ (canonical, cases[i].canonical);
    MUSTER_EXPECT_STREQ (cpu, cases[i].cpu);
    MUSTER_EXPECT_STREQ (task, cases[i].task);
    MUSTER_EXPECT_STREQ (of_any, cases[i].of_any);
  }
}
