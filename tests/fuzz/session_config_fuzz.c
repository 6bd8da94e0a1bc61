// SPDX-License-Identifier: Apache-2.0
/* What the engine reads of a session's ConfigProto, and the same bytes as a device's name. */
#include "base/protowire_private.h"
#include "engine/session/session_config.h"
#include "graph/device_name_private.h"
#include "tests/fuzz/fuzz.h"

const gsize muster_fuzz_n_picks = 0;

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  MusterSessionConfig config;
  const gboolean is_good = muster_session_config_read (bytes, &config, &error);
  g_assert_true (is_good == (error == NULL));
  g_assert_true (error == NULL || g_utf8_validate (error->message, -1, NULL));

  g_autofree char *text = g_strndup ((const char *)data, size);
  MusterDeviceName device;
  if (muster_device_name_parse (text, &device))
    g_assert_true (device.id >= -1 && strlen (device.type) < sizeof device.type);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char *const filters[] = {"/job:ps/replica:0/task:1/device:CPU:0", "/cpu:0", "/",
                                        "ps"};
  for (gsize i = 0; i < G_N_ELEMENTS (filters); i++) {
    g_autoptr (GByteArray) config = g_byte_array_new ();
    muster_proto_put_string (config, 4, filters[i]);
    muster_proto_put_uint (config, 7, 1);
    muster_proto_put_uint (config, 15, 1);
    muster_proto_put_string (config, 14, i == 3 ? "cluster" : "");
    muster_fuzz_seed (NULL, config->data, config->len);
    muster_fuzz_seed (NULL, filters[i], strlen (filters[i]));
  }
}
