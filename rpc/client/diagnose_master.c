// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/unpack.h"
#include "rpc/client/diagnose.h"
#include "rpc/client/rpc_client.h"
#include "rpc/proto/master.pb-c.h"

#define LIST_DEVICES "/tensorflow.MasterService/ListDevices"

/* Nobody's session: a master says at once that it doesn't know it. */
#define NO_SESSION "muster-looks"

static GBytes *
make_question (void)
{
  Tensorflow__ListDevicesRequest request = TENSORFLOW__LIST_DEVICES_REQUEST__INIT;

  request.session_handle = (char *)NO_SESSION;

  return muster_pack (&request.base);
}

/* What a call that ended so says of who was called. */
static MusterReach
stage_of (const GError *error)
{
  if (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED))
    return MUSTER_REACH_NO_MASTER;

  return muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) ||
                 muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
                 (error && error->domain != MUSTER_ERROR)
             ? MUSTER_REACH_NO_WORD
             : MUSTER_REACH_ANSWERS;
}

static char *
describe (MusterReach stage, const MusterDiagnosis *so_far, gint64 took_us)
{
  g_autofree char *took = muster_format_duration (took_us);

  switch (stage) {
  case MUSTER_REACH_NO_MASTER:
    return g_strdup_printf ("%s, but it has no MasterService", so_far->text);
  case MUSTER_REACH_NO_WORD:
    return g_strdup_printf ("%s, but MasterService never answered (%s)", so_far->text, took);
  default:
    return g_strdup_printf ("%s, MasterService answers", so_far->text);
  }
}

void
muster_diagnose_master (const char *address, gint64 deadline_us, GCancellable *cancellable,
                        MusterDiagnosis *out)
{
  g_return_if_fail (address != NULL && out != NULL);

  g_autoptr (GError) error = NULL;

  muster_diagnose (address, FALSE, deadline_us, cancellable, out);
  if (out->stage != MUSTER_REACH_ANSWERS)
    return;
  const gint64 began_us = muster_clock_now_us (muster_system_clock ());
  const MusterRpcOptions options = {.deadline_us = deadline_us, .wait_for_ready = TRUE};
  g_auto (MusterRope) question = {0};
  g_autoptr (GBytes) packed = make_question ();
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  muster_rope_append (&question, packed);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, LIST_DEVICES, &question, &options, cancellable, &error);
  out->stage = stage_of (error);
  char *text = describe (out->stage, out, muster_clock_now_us (muster_system_clock ()) - began_us);
  g_free (out->text);
  out->text = text;
}
