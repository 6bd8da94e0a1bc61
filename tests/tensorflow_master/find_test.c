// SPDX-License-Identifier: Apache-2.0
#include "master/remote/target.h"
#include "tensorflow/find_private.h"
#include "tensorflow/tensorflow_master.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>
#include <string.h>

/* A file below the test's folder; its path (transfer full). */
static char *
put (const char *path, const char *text, int mode)
{
  g_autofree char *full = g_build_filename (muster_test_tmpdir (), path, NULL);
  g_autofree char *folder = g_path_get_dirname (full);
  g_mkdir_with_parents (folder, 0700);
  MUSTER_EXPECT_TRUE (g_file_set_contents (full, text, -1, NULL));
  g_chmod (full, mode);
  return g_steal_pointer (&full);
}

static char *
below (const char *path)
{
  return g_build_filename (muster_test_tmpdir (), path, NULL);
}

static void
expect_found (const char *path, const char *wanted)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *found = muster_runtime_find_library (path, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (found, wanted);
}

/* Nothing is found by itself any more; before it, since PATH is where python3 is. */
static void
forget_environment (const char *path)
{
  g_unsetenv ("VIRTUAL_ENV");
  g_unsetenv ("CONDA_PREFIX");
  g_setenv ("PATH", path, TRUE);
}

MUSTER_TEST (Find, takes_any_folder_that_has_the_library)
{
  static const char *const folders[] = {"env", "env/lib/python3.11/site-packages",
                                        "env/lib/python3.11/site-packages/tensorflow"};
  g_autofree char *library =
      put ("env/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2", "", 0600);
  g_autofree char *other =
      put ("env/lib/python3.11/site-packages/tensorflow/libtensorflow_framework.so.2", "", 0600);
  for (gsize i = 0; i < G_N_ELEMENTS (folders); i++) {
    g_autofree char *folder = below (folders[i]);
    expect_found (folder, library);
  }
  expect_found (library, library);
}

MUSTER_TEST (Find, takes_the_folder_of_tensorflows_own_tarball)
{
  g_autofree char *longer = put ("c/lib/libtensorflow.so.2.21.0", "", 0600);
  g_autofree char *library = put ("c/lib/libtensorflow.so.2", "", 0600);
  g_autofree char *folder = below ("c");
  expect_found (folder, library);
}

MUSTER_TEST (Find, takes_the_virtual_environment_that_is_active)
{
  g_autofree char *library =
      put ("venv/lib64/python3.13/site-packages/tensorflow/libtensorflow_cc.so.2", "", 0600);
  g_autofree char *folder = below ("venv");
  forget_environment (muster_test_tmpdir ());
  g_setenv ("VIRTUAL_ENV", folder, TRUE);
  expect_found (NULL, library);
}

MUSTER_TEST (Find, asks_the_python3_of_the_path)
{
  g_autofree char *library = put ("site/tensorflow/libtensorflow_cc.so.2", "", 0600);
  g_autofree char *package = below ("site/tensorflow");
  g_autofree char *script = g_strdup_printf ("#!/bin/sh\necho '%s'\n", package);
  g_autofree char *python = put ("bin/python3", script, 0700);
  g_autofree char *bin = below ("bin");
  forget_environment (bin);
  expect_found (NULL, library);
}

MUSTER_TEST (Find, says_where_it_searched_and_how_to_get_it)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *python = put ("bad/python3", "#!/bin/sh\necho nonsense\nexit 1\n", 0700);
  g_autofree char *bin = below ("bad");
  forget_environment (bin);
  MUSTER_EXPECT_NULL (muster_runtime_find_library (NULL, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND, "$VIRTUAL_ENV (not set)");
  MUSTER_EXPECT_TRUE (strstr (error->message, "pip install tensorflow") != NULL);
}

MUSTER_TEST (Find, refuses_a_path_without_it)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *empty = below ("empty");
  g_mkdir (empty, 0700);
  MUSTER_EXPECT_NULL (muster_runtime_find_library (empty, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND, "TensorFlow not found in");
  g_clear_error (&error);
  MUSTER_EXPECT_NULL (muster_runtime_find_library ("/no/such/place", &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND, "'/no/such/place'");
  g_clear_error (&error);
  MUSTER_EXPECT_NULL (muster_runtime_find_library ("/dev/null", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
}

MUSTER_TEST (Find, refuses_targets_that_name_no_path)
{
  static const char *const targets[] = {"tensorflow:", "tensorflow://host"};
  muster_tensorflow_master_offer ();
  for (gsize i = 0; i < G_N_ELEMENTS (targets); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (muster_master_new_for_target (targets[i], &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

MUSTER_TEST (Find, makes_the_same_master_for_the_same_target)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *helper = g_canonicalize_filename ("tensorflow/muster-tensorflow", NULL);
  g_setenv ("MUSTER_TENSORFLOW_HELPER", helper, TRUE);
  muster_tensorflow_master_offer ();
  static const char target[] = "tensorflow:tests/tensorflow_master/libtensorflow_fake.so";
  g_autoptr (MusterMaster) one = muster_master_new_for_target (target, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterMaster) two = muster_master_new_for_target (target, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_PTR_EQ (one, two);
  MUSTER_EXPECT_STREQ (muster_master_target (one), target);
  MUSTER_EXPECT_TRUE (muster_master_is_remote (one));
  g_autoptr (MusterMaster) remote = muster_master_remote (one, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *told = muster_tensorflow_master_describe (MUSTER_TENSORFLOW_MASTER (one));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (told, "TensorFlow 2.99.0-fake from '"));
}
