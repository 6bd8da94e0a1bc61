// SPDX-License-Identifier: Apache-2.0
/* Every message of the .proto files that come from the network, unpacked, packed and unpacked
 * again; the first byte picks the message. */
#include "base/unpack_private.h"
#include "graph/proto/graph.pb-c.h"
#include "graph/proto/meta_graph.pb-c.h"
#include "graph/proto/meta_graph_text.pb-c.h"
#include "graph/proto/op_def.pb-c.h"
#include "rpc/proto/cluster.pb-c.h"
#include "rpc/proto/files.pb-c.h"
#include "rpc/proto/health.pb-c.h"
#include "rpc/proto/master.pb-c.h"
#include "rpc/proto/muster.pb-c.h"
#include "tests/fuzz/fuzz.h"

static const ProtobufCMessageDescriptor *const descriptors[] = {
#include "tests/fuzz/descriptors.inc"
};

#define N_DESCRIPTORS G_N_ELEMENTS (descriptors)

const gsize muster_fuzz_n_picks = 1;

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  if (size == 0)
    return 0;
  const ProtobufCMessageDescriptor *descriptor = descriptors[data[0] % N_DESCRIPTORS];
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) bad = NULL, error = NULL;
  const gboolean is_good = muster_unpack_check (descriptor, data + 1, size - 1, "input", &bad);
  const ProtobufCMessage *message =
      muster_unpack (descriptor, data + 1, size - 1, arena, "input", &error);
  g_assert_true (is_good == (bad == NULL));
  g_assert_true (is_good == (message != NULL));
  g_assert_true (is_good == (error == NULL));
  if (!is_good)
    return 0;
  g_autoptr (GBytes) packed = muster_pack (message);
  const ProtobufCMessage *again =
      muster_unpack (descriptor, g_bytes_get_data (packed, NULL), g_bytes_get_size (packed), arena,
                     "packed message", &error);
  g_assert_no_error (error);
  g_autoptr (GBytes) repacked = muster_pack (again);
  g_assert_true (g_bytes_equal (packed, repacked));
  return 0;
}

void
muster_fuzz_seeds (void)
{
  /* A varint, a double, text, a message in it and a float, each as fields 1 to 6. */
  static const char some[] = "\x08\1\x11xxxxxxxx\x1a\2ab\x22\2\x08\1\x2dyyyy\x32\2\1\2";
  static const char texts[] = "\x0a\1a\x12\1b\x1a\1c\x22\2\x0a\0";
  for (guint i = 0; i < N_DESCRIPTORS; i++) {
    const guint8 pick = (guint8)i;
    muster_fuzz_seed (&pick, some, sizeof some - 1);
    muster_fuzz_seed (&pick, texts, sizeof texts - 1);
    if (descriptors[i] == &tensorflow__graph_def__descriptor)
      muster_fuzz_seed_graphs (&pick);
  }
}
