// SPDX-License-Identifier: Apache-2.0
/* An address, taken apart, put together and taken apart again. */
#include "rpc/address_private.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *address = g_strndup ((const char *)data, size);
  g_autofree char *host = NULL, *same_host = NULL;
  guint16 port = 0, same_port = 0;
  const gboolean is_good = muster_address_parse (address, &host, &port, &error);
  g_assert_true (is_good == (error == NULL));
  if (!is_good)
    return 0;
  g_autofree char *again = muster_address_format (host, port);
  (void)muster_address_parse (again, &same_host, &same_port, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (same_host, ==, host);
  g_assert_cmpuint (same_port, ==, port);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char *const seeds[] = {"localhost:2222", "[::1]:0", "[fe80::1%eth0]:65535",
                                      "10.0.0.1:70000", "host",    "grpc://host:1"};
  for (gsize i = 0; i < G_N_ELEMENTS (seeds); i++)
    muster_fuzz_seed (NULL, seeds[i], strlen (seeds[i]));
}
