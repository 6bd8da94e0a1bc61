// SPDX-License-Identifier: Apache-2.0
#include "rpc/address_private.h"
#include "tests/gtest_shim.h"

static void
expect_address (const char *text, const char *host, guint16 port)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *got_host = NULL;
  guint16 got_port = 0;
  MUSTER_EXPECT_TRUE (muster_address_parse (text, &got_host, &got_port, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (got_host, host);
  MUSTER_EXPECT_EQ (got_port, port);
}

MUSTER_TEST (Address, is_a_host_and_a_port)
{
  expect_address ("localhost:2222", "localhost", 2222);
  expect_address ("10.0.0.1:0", "10.0.0.1", 0);
  expect_address ("ps-0.train.svc:65535", "ps-0.train.svc", 65535);
  expect_address ("[::1]:2222", "::1", 2222);
}

MUSTER_TEST (Address, says_what_is_wrong_with_it)
{
  static const char *const bad[] = {
      "",        "host",    ":2222",     "host:",     "host:65536", "host:-1",  "host:2222x",
      "::1:22",  "[::1]",   "[::1]2222", "[]:1",      "a b:1",      "a/b:1",    "grpc://a:1",
      "host: 1", "host:+1", "[::1:2222", "host:0x10", "host:1:2",   "host:22 ", "[fe80::1%eth0]:1",
  };
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *host = NULL;
    guint16 port = 7;
    MUSTER_TRACE ("'%s'", bad[i]);
    MUSTER_EXPECT_FALSE (muster_address_parse (bad[i], &host, &port, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_NULL (host);
    MUSTER_EXPECT_EQ (port, 7);
  }
}

MUSTER_TEST (Address, is_loopback_only_if_it_says_so)
{
  static const char *const loopback[] = {"localhost:1", "LocalHost:1",
                                         "127.0.0.1:0", "127.255.0.9:65535",
                                         "[::1]:2222",  "unix:/run/muster.sock"};
  static const char *const others[] = {
      "10.0.0.1:1",           "0.0.0.0:1", "[::]:1",      "128.0.0.1:1",
      "localhost.example:1",  "chief:1",   "127.0.0.1",   "localhost",
      "127.0.0.1.example:1",  "127.1:1",   "[fe80::1]:1", "",
      "[::ffff:127.0.0.1]:1x"};
  for (gsize i = 0; i < G_N_ELEMENTS (loopback); i++) {
    MUSTER_TRACE ("'%s'", loopback[i]);
    MUSTER_EXPECT_TRUE (muster_address_is_loopback (loopback[i]));
  }
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++) {
    MUSTER_TRACE ("'%s'", others[i]);
    MUSTER_EXPECT_FALSE (muster_address_is_loopback (others[i]));
  }
}

MUSTER_TEST (Address, is_put_together_with_brackets_where_needed)
{
  g_autofree char *name = muster_address_format ("ps0", 1);
  g_autofree char *number = muster_address_format ("::1", 2);
  MUSTER_EXPECT_STREQ (name, "ps0:1");
  MUSTER_EXPECT_STREQ (number, "[::1]:2");
}

MUSTER_TEST (Address, may_be_a_socket_of_this_machine)
{
  g_autofree char *name = g_strnfill (108, 'x'), *longer = g_strconcat ("unix:/", name, NULL);
  g_autoptr (GError) of_longer = NULL, of_relative = NULL;
  MUSTER_EXPECT_STREQ (muster_address_unix_path ("unix:/run/m.sock"), "/run/m.sock");
  MUSTER_EXPECT_NULL (muster_address_unix_path ("unix:22"));
  MUSTER_EXPECT_NULL (muster_address_unix_path ("localhost:22"));
  MUSTER_EXPECT_TRUE (muster_address_check ("unix:/run/m.sock", NULL));
  MUSTER_EXPECT_TRUE (muster_address_check ("unix:22", NULL)); /* a host of that name */
  MUSTER_EXPECT_FALSE (muster_address_check (longer, &of_longer));
  MUSTER_EXPECT_ERROR (of_longer, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_FALSE (muster_address_check ("unix:m.sock", &of_relative));
  MUSTER_EXPECT_ERROR (of_relative, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (of_relative->message,
                       "invalid address 'unix:m.sock': a socket's path must be absolute (use "
                       "HOST:PORT, [IPV6]:PORT or unix:/PATH)");
}

MUSTER_TEST (Address, is_a_part_of_a_target)
{
  gboolean tls = TRUE;
  MUSTER_EXPECT_STREQ (muster_address_in_target ("grpc://a:1", &tls), "a:1");
  MUSTER_EXPECT_FALSE (tls);
  MUSTER_EXPECT_STREQ (muster_address_in_target ("grpcs://a:1", &tls), "a:1");
  MUSTER_EXPECT_TRUE (tls);
  MUSTER_EXPECT_STREQ (muster_address_in_target ("unix:/m", &tls), "unix:/m");
  MUSTER_EXPECT_FALSE (tls);
  MUSTER_EXPECT_NULL (muster_address_in_target ("local", NULL));
  MUSTER_EXPECT_NULL (muster_address_in_target ("tensorflow:/a", NULL));
}
