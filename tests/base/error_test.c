// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include "tests/gtest_shim.h"

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

MUSTER_TEST (error, is_compared_with_its_domain)
{
  g_autoptr (GError) ours = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "why");
  g_autoptr (GError) other = g_error_new_literal (G_IO_ERROR, MUSTER_ERROR_ABORTED, "why");
  MUSTER_EXPECT_TRUE (muster_error_is (ours, MUSTER_ERROR_ABORTED));
  MUSTER_EXPECT_FALSE (muster_error_is (ours, MUSTER_ERROR_UNKNOWN));
  MUSTER_EXPECT_FALSE (muster_error_is (other, MUSTER_ERROR_ABORTED));
  MUSTER_EXPECT_FALSE (muster_error_is (NULL, MUSTER_ERROR_ABORTED));
}
