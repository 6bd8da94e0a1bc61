// SPDX-License-Identifier: Apache-2.0
#include "engine/session/session_config.h"

#include "base/error.h"
#include "base/log_private.h"
#include "base/protowire_private.h"
#include "graph/device_name_private.h"

/* tensorflow.ConfigProto */
enum {
  CONFIG_DEVICE_FILTERS = 4,
  CONFIG_ALLOW_SOFT_PLACEMENT = 7,
  CONFIG_CLUSTER_DEF = 14,
  CONFIG_ISOLATE_SESSION_STATE = 15,
};

/* Fields without an effect on the engine, by number, except those that every TensorFlow client
 * sends. */
static const char *const ignored[] = {
    [2] = "intra_op_parallelism_threads",
    [3] = "placement_period",
    [5] = "inter_op_parallelism_threads",
    [6] = "gpu_options",
    [8] = "log_device_placement",
    [13] = "rpc_options",
    [16] = "experimental",
    [17] = "share_cluster_devices_in_session",
    [18] = "pluggable_device_options",
};

static gboolean
check_filter (const MusterProtoField *field, GError **error)
{
  g_autofree char *text = g_strndup ((const char *)field->data, field->size);
  MusterDeviceName device;
  if (muster_device_name_parse (text, &device))
    return TRUE;
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "session's ConfigProto: the device filter '%s' is invalid (use "
                      "'/job:JOB/task:NUMBER')",
                      valid);
}

static gboolean
refuse_cluster (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "session's ConfigProto: cluster_def isn't supported by muster's own engine, "
                      "which is one task; remove it, or use TensorFlow's servers");
}

static gboolean
read_field (const MusterProtoField *field, MusterSessionConfig *read, GString *aside,
            GError **error)
{
  const gboolean is_on = field->type == MUSTER_WIRE_VARINT && field->value != 0;
  if (field->number == CONFIG_ALLOW_SOFT_PLACEMENT)
    read->allow_soft_placement = is_on;
  else if (field->number == CONFIG_ISOLATE_SESSION_STATE)
    read->isolate_session_state = is_on;
  else if (field->number == CONFIG_DEVICE_FILTERS && field->type == MUSTER_WIRE_BYTES)
    return check_filter (field, error);
  else if (field->number == CONFIG_CLUSTER_DEF && field->type == MUSTER_WIRE_BYTES &&
           field->size > 0)
    return refuse_cluster (error);
  else if (field->number < G_N_ELEMENTS (ignored) && ignored[field->number] != NULL &&
           (is_on || (field->type == MUSTER_WIRE_BYTES && field->size > 0)))
    g_string_append_printf (aside, "%s%s", aside->len > 0 ? ", " : "", ignored[field->number]);
  return TRUE;
}

gboolean
muster_session_config_read (GBytes *config, MusterSessionConfig *read, GError **error)
{
  MusterSessionConfig all = {.allow_soft_placement = config == NULL};
  g_autoptr (GString) aside = g_string_new (NULL);
  MusterProtoReader reader = {0};
  MusterProtoField field;
  if (config != NULL)
    reader = muster_proto_reader (g_bytes_get_data (config, NULL), g_bytes_get_size (config));
  while (muster_proto_read_field (&reader, &field))
    if (!read_field (&field, &all, aside, error))
      return FALSE;
  if (!muster_proto_at_end (&reader)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "session's ConfigProto: it ends in the middle of a field");
  }
  if (aside->len > 0)
    muster_log (G_LOG_LEVEL_INFO, "session-config", "MESSAGE",
                "ignored options in a session's ConfigProto: %s", aside->str);
  *read = all;
  return TRUE;
}
