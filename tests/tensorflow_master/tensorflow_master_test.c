// SPDX-License-Identifier: Apache-2.0
#include "master/master.h"
#include "master/remote/target.h"
#include "tensorflow/tensorflow_master.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define FAKE "tests/tensorflow_master/libtensorflow_fake.so"

/* The target's master, of a runtime that misbehaves so. */
static MusterMaster *
make (const char *target, const char *how)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *helper = g_canonicalize_filename ("tensorflow/muster-tensorflow", NULL);
  g_setenv ("MUSTER_TENSORFLOW_HELPER", helper, TRUE);
  g_setenv ("MUSTER_FAKE_TENSORFLOW", how, TRUE);
  muster_tensorflow_master_offer ();
  MusterMaster *master = muster_master_new_for_target (target, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return master;
}

static gint64
soon (void)
{
  return test_deadline_in (MUSTER_MILLISECOND);
}

/* Each call that waits for the start: whether it came to something. */
typedef gboolean (*Ask) (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable,
                         GError **error);

static gboolean
ask_session (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) nothing = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (nothing);
  g_autoptr (MusterSession) session =
      muster_master_create_session (master, graph, NULL, deadline_us, cancellable, error);
  return session != NULL;
}

static gboolean
ask_devices (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) devices =
      muster_master_list_devices (master, deadline_us, cancellable, error);
  return devices != NULL;
}

static gboolean
ask_reset (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_master_reset (master, NULL, deadline_us, cancellable, error);
}

static gboolean
ask_remote (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterMaster) remote = muster_master_remote (master, deadline_us, cancellable, error);
  return remote != NULL;
}

MUSTER_TEST (TensorflowMaster, that_starts_keeps_to_each_calls_deadline_and_cancellable)
{
  static const Ask calls[] = {ask_session, ask_devices, ask_reset, ask_remote};
  g_autoptr (MusterMaster) master = make ("tensorflow:" FAKE, "hang");
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_cancellable_cancel (cancelled);
  MUSTER_ASSERT_TRUE (master != NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (calls); i++) {
    g_autoptr (GError) late = NULL;
    g_autoptr (GError) gone = NULL;
    MUSTER_EXPECT_FALSE (calls[i](master, soon (), NULL, &late));
    MUSTER_EXPECT_SAYS (late, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "still starting");
    MUSTER_EXPECT_FALSE (calls[i](master, MUSTER_WAIT_FOREVER, cancelled, &gone));
    MUSTER_EXPECT_ERROR (gone, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  }
  g_autofree char *told = muster_tensorflow_master_describe (MUSTER_TENSORFLOW_MASTER (master));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (told, "not serving yet"));
}

MUSTER_TEST (TensorflowMaster, whose_start_failed_is_made_anew_when_it_is_asked_for_again)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) first = make ("tensorflow:./" FAKE, "fail");
  MUSTER_EXPECT_FALSE (ask_remote (first, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_clear_error (&error);
  g_autoptr (MusterMaster) second = make ("tensorflow:./" FAKE, "");
  MUSTER_EXPECT_TRUE (ask_remote (second, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}
