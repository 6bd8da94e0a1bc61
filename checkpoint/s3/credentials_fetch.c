// SPDX-License-Identifier: Apache-2.0
/* Fetches temporary keys from a service: the token service (web identity), a container's
 * endpoint, or the machine's metadata service. Each is asked again while its refusal may be
 * temporary. */
#include "base/error.h"
#include "base/files/json_text_private.h"
#include "base/files/read_file_private.h"
#include "base/safe_text_private.h"
#include "checkpoint/s3/credential_services_private.h"
#include "checkpoint/s3/s3_failure_private.h"
#include "checkpoint/s3/s3_uri_private.h"
#include "checkpoint/s3/s3_xml_private.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define TRIES         3
#define PAUSE_US      (500 * MUSTER_MILLISECOND)
#define STALL_US      (5 * MUSTER_SECOND)
#define MACHINE_US    (1 * MUSTER_SECOND)
#define TOKEN_MAX     ((gsize)64 << 10)
#define JSON_DEPTH    8
#define MACHINE       "http://169.254.169.254"
#define CONTAINER     "http://169.254.170.2"
#define TOKEN_SECONDS "21600"

/* Returns TRUE for a refusal that may be temporary: services of this machine refuse while a role
 * is attached, an agent starts or a token expires. The token service states what is temporary. */
static gboolean
is_passing (const MusterHttpRequest *request, const MusterHttpAnswer *answer,
            const MusterS3Xml *xml)
{
  if (answer->outcome != MUSTER_HTTP_ANSWERED)
    return answer->outcome != MUSTER_HTTP_LATE;
  const MusterS3Class class =
      muster_s3_class_of_code (xml != NULL ? xml->code : NULL, answer->status);
  return request->is_direct || (class != MUSTER_S3_FINAL && class != MUSTER_S3_EXPIRED);
}

static void
set_refusal (const char *what, const MusterHttpAnswer *answer, const MusterS3Xml *xml,
             GError **error)
{
  const gboolean is_refused =
      answer->outcome == MUSTER_HTTP_ANSWERED && answer->status < 500 && answer->status != 429;
  g_autofree char *why = muster_s3_failure_describe (answer, xml, NULL);
  muster_fail (error, is_refused ? MUSTER_ERROR_UNAUTHENTICATED : MUSTER_ERROR_UNAVAILABLE,
               "no credentials from %s: %s", what, why);
}

/* One exchange with a service, repeated if that can help. what names the service. NULL with
 * UNAVAILABLE, or UNAUTHENTICATED if it refuses. (transfer full) */
static char *
ask (const char *what, const MusterHttpRequest *request, const MusterS3Bound *bound, GError **error)
{
  for (guint i = 1;; i++) {
    g_auto (MusterHttpAnswer) answer = {0};
    if (!muster_http_perform (request, bound, &answer, error))
      return NULL;
    if (answer.outcome == MUSTER_HTTP_CANCELLED) {
      g_cancellable_set_error_if_cancelled (muster_s3_cancellable (bound), error);
      return NULL;
    }
    if (answer.outcome == MUSTER_HTTP_ANSWERED && answer.status == 200)
      return g_string_free (g_steal_pointer (&answer.text), FALSE);
    g_autoptr (MusterS3Xml) xml = muster_s3_xml_parse (answer.text->str, answer.text->len, NULL);
    if (i == TRIES || !is_passing (request, &answer, xml)) {
      set_refusal (what, &answer, xml, error);
      return NULL;
    }
    const gint64 pause_us = (gint64)(muster_clock_random (bound->clock) * PAUSE_US * (1u << i));
    const gint64 wake_us = muster_clock_now_us (bound->clock) + pause_us;
    if (!muster_clock_wait_until (bound->clock, MIN (wake_us, bound->deadline_us),
                                  muster_s3_cancellable (bound), error))
      return NULL;
  }
}

/* Reads a token for a header or a form. */
static char *
read_token (const char *path, GError **error)
{
  const MusterFile file = {path, "the token file", TOKEN_MAX, FALSE};
  g_autofree char *text = NULL;
  if (!muster_file_read (&file, &text, NULL, error))
    return NULL;
  g_strstrip (text);
  if (muster_is_secret (text, strlen (text)))
    return g_steal_pointer (&text);
  muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED, "'%s' holds no token", path);
  return NULL;
}

/* Returns 0 if there is a date that can't be read. */
static gint64
read_date (const char *text)
{
  g_autoptr (GTimeZone) utc = g_time_zone_new_utc ();
  g_autoptr (GDateTime) date =
      text != NULL && *text != '\0' ? g_date_time_new_from_iso8601 (text, utc) : NULL;
  return date != NULL                    ? g_date_time_to_unix (date) * MUSTER_SECOND
         : text != NULL && *text != '\0' ? 0
                                         : G_MAXINT64;
}

static gboolean
set_keys (const char *what, const char *id, const char *secret, const char *token,
          const char *expiration, MusterS3Keys *keys, GError **error)
{
  g_autofree char *answer = g_strdup_printf ("no credentials from %s: its answer", what);
  return muster_s3_keys_set (answer, id, secret, token, read_date (expiration), keys, error);
}

static const char *
member (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);
  return node != NULL && JSON_NODE_HOLDS_VALUE (node) &&
                 json_node_get_value_type (node) == G_TYPE_STRING
             ? json_node_get_string (node)
             : NULL;
}

gboolean
muster_s3_keys_from_json (const char *what, const char *text, MusterS3Keys *keys, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  if (!muster_json_is_flat (text, JSON_DEPTH) || !muster_json_is_one_object (text) ||
      !json_parser_load_from_data (parser, text, -1, NULL) ||
      !JSON_NODE_HOLDS_OBJECT (json_parser_get_root (parser)))
    return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                        "no credentials from %s: its answer isn't a JSON object", what);
  JsonObject *object = json_node_get_object (json_parser_get_root (parser));
  return set_keys (what, member (object, "AccessKeyId"), member (object, "SecretAccessKey"),
                   member (object, "Token"), member (object, "Expiration"), keys, error);
}

gboolean
muster_s3_keys_from_xml (const char *what, const char *text, gsize size, MusterS3Keys *keys,
                         GError **error)
{
  g_autoptr (MusterS3Xml) xml = muster_s3_xml_parse (text, size, error);
  return xml != NULL && set_keys (what, xml->access_key_id, xml->secret_access_key,
                                  xml->session_token, xml->expiration, keys, error);
}

static char *
web_identity_form (const char *token, const char *role, const char *session)
{
  const char *const pairs[][2] = {
      {"Action", "AssumeRoleWithWebIdentity"},
      {"RoleArn", role},
      {"RoleSessionName", session != NULL ? session : "muster"},
      {"Version", "2011-06-15"},
      {"WebIdentityToken", token},
  };
  return muster_s3_query (pairs, G_N_ELEMENTS (pairs));
}

/* (transfer full) */
static char *
token_service (const MusterS3Config *config)
{
  const char *set = muster_s3_env ("AWS_ENDPOINT_URL_STS");
  set = set != NULL ? set : muster_s3_env ("AWS_ENDPOINT_URL");
  if (set != NULL)
    return g_strdup_printf ("%s%s", set, g_str_has_suffix (set, "/") ? "" : "/");
  return g_strdup_printf ("https://sts.%s.%s/", config->region,
                          g_str_has_prefix (config->region, "cn-") ? "amazonaws.com.cn"
                                                                   : "amazonaws.com");
}

gboolean
muster_s3_keys_from_web_identity (const MusterS3Config *config, const char *token_file,
                                  const char *role, const char *session, const MusterS3Bound *bound,
                                  MusterS3Keys *keys, GError **error)
{
  static const char *const headers[] = {"content-type: application/x-www-form-urlencoded", NULL};
  if (role == NULL)
    return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                        "a web identity token is given and no role; set AWS_ROLE_ARN");
  g_autofree char *token = read_token (token_file, error);
  if (token == NULL)
    return FALSE;
  g_autofree char *url = token_service (config), *form = web_identity_form (token, role, session);
  const MusterHttpRequest request = {.method = "POST",
                                     .url = url,
                                     .headers = headers,
                                     .body = form,
                                     .size = strlen (form),
                                     .authorities = config->authorities,
                                     .stall_us = STALL_US};
  g_autofree char *text = ask (url, &request, bound, error);
  return text != NULL && muster_s3_keys_from_xml (url, text, strlen (text), keys, error);
}

/* Returns TRUE for services of this machine, which alone may get the token without TLS. */
static gboolean
is_trusted (const char *url)
{
  static const char *const hosts[] = {"localhost",     "127.0.0.1",      "::1",
                                      "169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
  g_autoptr (GUri) uri = g_uri_parse (url, G_URI_FLAGS_NONE, NULL);
  if (uri == NULL || g_uri_get_host (uri) == NULL)
    return FALSE;
  if (strcmp (g_uri_get_scheme (uri), "https") == 0)
    return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (hosts); i++)
    if (strcmp (g_uri_get_host (uri), hosts[i]) == 0)
      return TRUE;
  return FALSE;
}

/* *header is NULL if the service needs none. */
static gboolean
container_header (char **header, GError **error)
{
  const char *file = muster_s3_env ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const char *given = muster_s3_env ("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  g_autofree char *read = file != NULL ? read_token (file, error) : NULL;
  if (file != NULL && read == NULL)
    return FALSE;
  const char *token = read != NULL ? read : given;
  if (token != NULL && strpbrk (token, "\r\n") != NULL)
    return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                        "AWS_CONTAINER_AUTHORIZATION_TOKEN holds more than a line");
  *header = token != NULL ? g_strconcat ("authorization: ", token, NULL) : NULL;
  return TRUE;
}

gboolean
muster_s3_keys_from_container (const MusterS3Config *config, const MusterS3Bound *bound,
                               MusterS3Keys *keys, GError **error)
{
  const char *relative = muster_s3_env ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  g_autofree char *url = relative != NULL
                             ? g_strconcat (CONTAINER, relative, NULL)
                             : g_strdup (muster_s3_env ("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
  g_autofree char *header = NULL;
  if (!is_trusted (url))
    return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                        "AWS_CONTAINER_CREDENTIALS_FULL_URI is '%s'; without https it must be an "
                        "address of this machine",
                        url);
  if (!container_header (&header, error))
    return FALSE;
  const char *const headers[] = {header, NULL};
  const MusterHttpRequest request = {.method = "GET",
                                     .url = url,
                                     .headers = headers,
                                     .authorities = config->authorities,
                                     .is_direct = TRUE,
                                     .stall_us = STALL_US};
  g_autofree char *text = ask ("the container's service", &request, bound, error);
  return text != NULL && muster_s3_keys_from_json ("the container's service", text, keys, error);
}

/* One request of the metadata service. */
static char *
ask_machine (const char *method, const char *path, const char *header, const MusterS3Bound *bound,
             GError **error)
{
  const char *set = muster_s3_env ("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  g_autofree char *base = g_strdup (set != NULL ? set : MACHINE);
  const gsize n = strlen (base);
  if (n > 0 && base[n - 1] == '/')
    base[n - 1] = '\0';
  g_autofree char *url = g_strconcat (base, path, NULL);
  const char *const headers[] = {header, NULL};
  const MusterHttpRequest request = {.method = method,
                                     .url = url,
                                     .headers = headers,
                                     .is_direct = TRUE,
                                     .stall_us = MACHINE_US,
                                     .connect_us = MACHINE_US};
  return ask ("the machine's metadata service", &request, bound, error);
}

#define ROLES "/latest/meta-data/iam/security-credentials/"

static char *
fetch_from_machine (const MusterS3Bound *bound, GError **error)
{
  g_autofree char *token =
      ask_machine ("PUT", "/latest/api/token",
                   "x-aws-ec2-metadata-token-ttl-seconds: " TOKEN_SECONDS, bound, error);
  if (token == NULL)
    return NULL;
  g_strstrip (token);
  if (strpbrk (token, "\r\n") != NULL) {
    muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                 "no credentials from the machine's metadata service: its token isn't one");
    return NULL;
  }
  g_autofree char *header = g_strconcat ("x-aws-ec2-metadata-token: ", token, NULL);
  g_autofree char *roles = ask_machine ("GET", ROLES, header, bound, error);
  if (roles == NULL)
    return NULL;
  *strchrnul (roles, '\n') = '\0';
  g_autofree char *role = muster_s3_encode (g_strstrip (roles), FALSE);
  g_autofree char *path = g_strconcat (ROLES, role, NULL);
  return ask_machine ("GET", path, header, bound, error);
}

gboolean
muster_s3_keys_from_machine (const MusterS3Config *config G_GNUC_UNUSED, const MusterS3Bound *bound,
                             MusterS3Keys *keys, GError **error)
{
  g_autoptr (GError) why = NULL;
  g_autofree char *text = fetch_from_machine (bound, &why);
  if (text != NULL)
    return muster_s3_keys_from_json ("the machine's metadata service", text, keys, error);
  if (!muster_error_is (why, MUSTER_ERROR_UNAVAILABLE)) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  /* There is no metadata service; usually no credentials were set at all. */
  return muster_fail (error, MUSTER_ERROR_UNAUTHENTICATED,
                      "no credentials for the object store: neither the environment, nor a "
                      "profile, nor the machine has any (%s); set AWS_ACCESS_KEY_ID and "
                      "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
                      why->message);
}
