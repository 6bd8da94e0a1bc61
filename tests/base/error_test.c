// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include "tests/gtest_shim.h"

#include <errno.h>

MUSTER_TEST (error, has_the_domain_that_bindings_know)
{
  MUSTER_EXPECT_STREQ (g_quark_to_string (MUSTER_ERROR), "muster-error-quark");
}

MUSTER_TEST (error, names_every_code)
{
  MUSTER_EXPECT_STREQ (muster_error_name (MUSTER_ERROR_DEADLINE_EXCEEDED), "deadline exceeded");
  MUSTER_EXPECT_STREQ (muster_error_name (MUSTER_ERROR_UNAUTHENTICATED), "unauthenticated");
  for (int code = 1; code <= 16; code++)
    MUSTER_EXPECT_TRUE (*muster_error_name (code) != '\0');
  MUSTER_EXPECT_STREQ (muster_error_name (0), "ok");
  MUSTER_EXPECT_STREQ (muster_error_name (-1), "unknown");
  MUSTER_EXPECT_STREQ (muster_error_name (17), "unknown");
}

MUSTER_TEST (error, takes_only_known_numbers_from_the_wire)
{
  MUSTER_EXPECT_EQ (muster_error_from_wire (1), MUSTER_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_error_from_wire (14), MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_EQ (muster_error_from_wire (16), MUSTER_ERROR_UNAUTHENTICATED);
  MUSTER_EXPECT_EQ (muster_error_from_wire (0), MUSTER_ERROR_UNKNOWN);
  MUSTER_EXPECT_EQ (muster_error_from_wire (17), MUSTER_ERROR_UNKNOWN);
  MUSTER_EXPECT_EQ (muster_error_from_wire (G_MININT), MUSTER_ERROR_UNKNOWN);
}

static int
wire_of (GQuark domain, int code)
{
  g_autoptr (GError) error = g_error_new_literal (domain, code, "why");
  return muster_error_to_wire (error);
}

MUSTER_TEST (error, crosses_the_wire_as_a_number)
{
  for (int code = 1; code <= 16; code++)
    MUSTER_EXPECT_EQ (wire_of (MUSTER_ERROR, code), code);
  MUSTER_EXPECT_EQ (wire_of (G_IO_ERROR, G_IO_ERROR_CANCELLED), 1);
  MUSTER_EXPECT_EQ (wire_of (G_IO_ERROR, G_IO_ERROR_NOT_FOUND), 5);
  MUSTER_EXPECT_EQ (wire_of (G_FILE_ERROR, G_FILE_ERROR_NOENT), 5);
  MUSTER_EXPECT_EQ (wire_of (G_FILE_ERROR, G_FILE_ERROR_ACCES), 7);
  MUSTER_EXPECT_EQ (wire_of (G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED), 7);
  MUSTER_EXPECT_EQ (wire_of (G_IO_ERROR, G_IO_ERROR_NO_SPACE), 8);
  MUSTER_EXPECT_EQ (wire_of (G_FILE_ERROR, G_FILE_ERROR_NOSPC), 8);
  MUSTER_EXPECT_EQ (wire_of (G_IO_ERROR, G_IO_ERROR_BUSY), 2);
}

/* What TensorFlow 2.21 gave for each errno. */
MUSTER_TEST (error, of_a_file_has_tensorflows_code)
{
  static const struct {
    int number;
    int code;
  } of[] = {{ENOENT, 5},       {ENOTDIR, 9}, {EISDIR, 9}, {EROFS, 7},  {EACCES, 7}, {EPERM, 7},
            {ENAMETOOLONG, 3}, {EINVAL, 3},  {ELOOP, 2},  {EMFILE, 8}, {ENFILE, 8}, {ENOSPC, 8}};
  for (gsize i = 0; i < G_N_ELEMENTS (of); i++)
    MUSTER_EXPECT_EQ (wire_of (G_FILE_ERROR, (int)g_file_error_from_errno (of[i].number)),
                      of[i].code);
}

MUSTER_TEST (error, is_compared_with_its_domain)
{
  g_autoptr (GError) ours = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "why");
  g_autoptr (GError) other = g_error_new_literal (G_IO_ERROR, MUSTER_ERROR_ABORTED, "why");
  MUSTER_EXPECT_TRUE (muster_error_is (ours, MUSTER_ERROR_ABORTED));
  MUSTER_EXPECT_FALSE (muster_error_is (ours, MUSTER_ERROR_UNKNOWN));
  MUSTER_EXPECT_FALSE (muster_error_is (other, MUSTER_ERROR_ABORTED));
  MUSTER_EXPECT_FALSE (muster_error_is (NULL, MUSTER_ERROR_ABORTED));
}
