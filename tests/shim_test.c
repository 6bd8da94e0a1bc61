// SPDX-License-Identifier: Apache-2.0
#include <gio/gio.h>
#include <string.h>

#include "tests/gtest_shim.h"

MUSTER_TEST (shim, equal)
{
  size_t n = 3;
  MUSTER_EXPECT_EQ (3, 1 + 2);
  MUSTER_EXPECT_EQ (n, 3);
  MUSTER_EXPECT_EQ (n, 3u);
  MUSTER_EXPECT_LT (1.5, 2.5f);
  MUSTER_EXPECT_NEAR (1.0, 1.0 + 1e-9, 1e-6);
  MUSTER_EXPECT_STREQ ("a", "a");
  MUSTER_EXPECT_MEMEQ ("abc", 3, "abc", 3);
  gint64 big = G_MAXINT64;
  guint64 ubig = G_MAXUINT64;
  MUSTER_EXPECT_EQ (big, G_MAXINT64);
  MUSTER_EXPECT_EQ (ubig, G_MAXUINT64);
  MUSTER_EXPECT_GT (big, -1);
}
MUSTER_TEST (shim, error)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  MUSTER_EXPECT_FALSE (g_file_get_contents ("/nonexistent", &text, NULL, &error));
  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  MUSTER_EXPECT_SAYS (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "nonexistent");
}
MUSTER_TEST (shim, skipped)
{
  MUSTER_SKIP ("no %s here", "gpu");
}
MUSTER_TEST (shim, tmpdir)
{
  g_autofree char *p = g_build_filename (muster_test_tmpdir (), "x", NULL);
  g_autoptr (GError) error = NULL;
  g_file_set_contents (p, "hi", -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
}
static void
critical (gpointer data)
{
  g_critical ("boom %d", GPOINTER_TO_INT (data));
}
MUSTER_TEST (shim, death)
{
  MUSTER_EXPECT_DEATH (critical, GINT_TO_POINTER (7), "boom 7");
}
MUSTER_TEST (shim, expected_log)
{
  MUSTER_EXPECT_LOG (G_LOG_DOMAIN, G_LOG_LEVEL_CRITICAL, "*boom*");
  critical (GINT_TO_POINTER (3));
  MUSTER_ASSERT_LOGGED ();
}
