// SPDX-License-Identifier: Apache-2.0
/* What an object store, a credentials service or a file of AWS's tools may hold. */
#include "checkpoint/s3/credential_services_private.h"
#include "checkpoint/s3/ini_private.h"
#include "checkpoint/s3/s3_uri_private.h"
#include "checkpoint/s3/s3_xml_private.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* An answer's NULs end a name in it, as they would in C; no field is longer than the answer. */
static void
fuzz_xml (const char *text, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterS3Xml) xml = muster_s3_xml_parse (text, size, &error);
  g_assert_true ((xml != NULL) == (error == NULL));
  for (guint i = 0; xml != NULL && i < xml->keys->len; i++)
    g_assert_cmpuint (strlen (xml->keys->pdata[i]), <=, size);
}

static void
fuzz_keys (const char *text, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterS3Keys) of_json = {0}, of_xml = {0};
  if (muster_s3_keys_from_json ("it", text, &of_json, &error))
    g_assert_true (*of_json.id != '\0' && *of_json.secret != '\0');
  g_assert_true ((of_json.id != NULL) == (error == NULL));
  if (muster_s3_keys_from_xml ("it", text, size, &of_xml, NULL))
    g_assert_true (*of_xml.id != '\0' && *of_xml.secret != '\0');
}

static void
fuzz_ini (const char *text, gsize size)
{
  g_autoptr (GHashTable) settings = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  if (!muster_ini_read (text, size, "profile x", settings))
    g_assert_cmpuint (g_hash_table_size (settings), ==, 0);
}

/* What is accepted is written the same way again. */
static void
fuzz_uri (const char *text)
{
  g_auto (MusterS3Uri) uri = {0}, again = {0};
  g_autofree char *path = g_strconcat (MUSTER_S3_SCHEME, text, NULL);
  if (!muster_s3_uri_parse (path, &uri, NULL))
    return;
  g_autofree char *written = g_strdup_printf (MUSTER_S3_SCHEME "%s/%s", uri.bucket, uri.key);
  g_assert_true (muster_s3_uri_parse (written, &again, NULL));
  g_assert_cmpstr (again.key, ==, uri.key);
  g_autofree char *encoded = muster_s3_encode (uri.key, TRUE);
  g_autofree char *decoded = g_uri_unescape_string (encoded, NULL);
  g_assert_cmpstr (decoded, ==, uri.key);
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autofree char *text = g_strndup ((const char *)data, size);
  fuzz_xml ((const char *)data, size);
  fuzz_keys (text, strlen (text));
  fuzz_ini ((const char *)data, size);
  fuzz_uri (text);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char *const seeds[] = {
      "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><EncodingType>url</EncodingType>"
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken><Contents>"
      "<Key>run/a+%41</Key></Contents><CommonPrefixes><Prefix>run/b/</Prefix></CommonPrefixes>"
      "</ListBucketResult>",
      "<R><Upload><Key>a</Key><UploadId>b</UploadId></Upload><NextKeyMarker>a</NextKeyMarker></R>",
      "<Error><Code>SlowDown</Code><Message>m &amp; m</Message></Error>",
      "<A><B><Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey>"
      "<SessionToken>c</SessionToken><Expiration>2026-01-01T00:00:00Z</Expiration></Credentials>"
      "</B></A>",
      ("{\"AccessKeyId\": \"a\", \"SecretAccessKey\": \"b\", \"Token\": \"c\", "
       "\"Expiration\": \"2026-01-01T00:00:00Z\"}"),
      "[profile x]\naws_access_key_id = a\n# c\n  nested = 1\n[default]\nregion=eu\n",
      "bucket/run/model.ckpt-1"};
  for (gsize i = 0; i < G_N_ELEMENTS (seeds); i++)
    muster_fuzz_seed (NULL, seeds[i], strlen (seeds[i]));
}
