// SPDX-License-Identifier: Apache-2.0
/* The parts of the S3 store that need no server. */
#include "base/error.h"
#include "checkpoint/s3/credential_services_private.h"
#include "checkpoint/s3/curl_library_private.h"
#include "checkpoint/s3/ini_private.h"
#include "checkpoint/s3/s3_storage.h"
#include "checkpoint/s3/s3_uri_private.h"
#include "checkpoint/s3/s3_xml_private.h"
#include "tests/gtest_shim.h"

#include <dlfcn.h>
#include <string.h>

MUSTER_TEST (Curl, what_is_missing_is_named_with_its_package)
{
  g_autoptr (GError) of_absent = NULL, of_other = NULL;
  MusterCurl curl;
  MUSTER_EXPECT_FALSE (muster_curl_load ("libmuster-absent.so.4", &curl, &of_absent));
  MUSTER_EXPECT_FALSE (muster_curl_load ("libz.so.1", &curl, &of_other));

  MUSTER_EXPECT_SAYS (of_absent, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
                      "install the package libcurl4");
  MUSTER_EXPECT_SAYS (of_other, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "libcurl 7.88 or newer");
}

static gboolean
is_curl_loaded (void)
{
  void *library = dlopen ("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD);
  if (library != NULL)
    dlclose (library);
  return library != NULL;
}

MUSTER_TEST (Curl, is_loaded_by_the_first_request_only)
{
  g_autoptr (GError) error = NULL;
  const MusterS3Options options = {.endpoint_url = "http://127.0.0.1:1", .retry_us = 1};
  MUSTER_ASSERT_FALSE (is_curl_loaded ());

  g_autoptr (MusterStorage) storage = muster_s3_storage_new (&options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (is_curl_loaded ());

  g_setenv ("AWS_ACCESS_KEY_ID", "id", TRUE);
  g_setenv ("AWS_SECRET_ACCESS_KEY", "secret", TRUE);
  g_autoptr (MusterStorage) used = muster_s3_storage_new (&options, &error);
  MUSTER_EXPECT_NULL (muster_storage_list (used, "s3://bucket/run", &error));
  MUSTER_EXPECT_TRUE (is_curl_loaded ());
}

MUSTER_TEST (S3Storage, is_an_object_store_of_its_scheme_only)
{
  g_autoptr (GError) error = NULL, of_path = NULL, of_rename = NULL;
  g_autoptr (MusterStorage) storage = muster_s3_storage_new (NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (muster_storage_check_path (storage, "path", "s3://bucket/run", NULL));
  MUSTER_EXPECT_FALSE (muster_storage_check_path (storage, "path", "/tmp/run", &of_path));
  MUSTER_EXPECT_FALSE (muster_storage_can_rename (storage, "s3://bucket/run"));
  MUSTER_EXPECT_FALSE (muster_storage_rename (storage, "s3://b0b/a", "s3://b0b/b", &of_rename));

  MUSTER_EXPECT_ERROR (of_path, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_SAYS (of_rename, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "copy it");
}

MUSTER_TEST (S3Options, a_copy_owns_what_it_has)
{
  char region[] = "eu-central-1";
  MusterS3Options *options = g_new0 (MusterS3Options, 1);
  options->region = g_strdup (region);
  options->clock = g_object_ref (muster_system_clock ());

  MusterS3Options *copy = g_boxed_copy (MUSTER_TYPE_S3_OPTIONS, options);

  MUSTER_EXPECT_STREQ (copy->region, "eu-central-1");
  MUSTER_EXPECT_TRUE (copy->region != options->region);
  MUSTER_EXPECT_PTR_EQ (copy->clock, muster_system_clock ());
  g_boxed_free (MUSTER_TYPE_S3_OPTIONS, copy);
  g_boxed_free (MUSTER_TYPE_S3_OPTIONS, options);
}

static char *
url_of (const MusterS3Options *options, const char *bucket, const char *key)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterS3Config) config = muster_s3_config_new (options, &error);
  return config != NULL ? muster_s3_config_url (config, bucket, key, NULL)
                        : g_strdup (error->message);
}

MUSTER_TEST (S3Config, the_bucket_is_in_awss_host_and_in_anothers_path)
{
  static const struct {
    const char *endpoint, *region, *bucket, *expected;
  } cases[] = {
      {NULL, "eu-west-1", "my-run", "https://my-run.s3.eu-west-1.amazonaws.com/a%20b/c"},
      {NULL, "cn-north-1", "my-run", "https://my-run.s3.cn-north-1.amazonaws.com.cn/a%20b/c"},
      {NULL, "eu-west-1", "my.run", "https://s3.eu-west-1.amazonaws.com/my.run/a%20b/c"},
      {NULL, "eu-west-1", "My_run", "https://s3.eu-west-1.amazonaws.com/My_run/a%20b/c"},
      {"http://h:9000/", "x", "my-run", "http://h:9000/my-run/a%20b/c"},
      {"https://h/base//", "x", "my-run", "https://h/base/my-run/a%20b/c"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    const MusterS3Options options = {.endpoint_url = cases[i].endpoint, .region = cases[i].region};
    g_autofree char *url = url_of (&options, cases[i].bucket, "a b/c");
    MUSTER_EXPECT_STREQ (url, cases[i].expected);
  }
}

MUSTER_TEST (S3Uri, a_query_is_encoded_and_leaves_out_what_is_null)
{
  const char *const pairs[][2] = {{"a", "x y/&=+~"}, {"b", NULL}, {"c", ""}};
  g_autofree char *query = muster_s3_query (pairs, G_N_ELEMENTS (pairs));
  MUSTER_EXPECT_STREQ (query, "a=x%20y%2F%26%3D%2B~&c=");
}

MUSTER_TEST (Ini, reads_one_section_over_what_is_there)
{
  static const char text[] =
      "ignored = 0\n[default]\r\na = 1\r\n# a = 2\n; a = 3\n[profile   x]\n"
      "a=4 # kept\ns3 =\n  a = 5\n\tb = 6\nnothing\n= 7\nc = d=e\n[default]\n"
      "b = 8";
  g_autoptr (GHashTable) settings = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);

  MUSTER_EXPECT_FALSE (muster_ini_read (text, strlen (text), "x", settings));
  MUSTER_EXPECT_TRUE (muster_ini_read (text, strlen (text), "default", settings));
  MUSTER_EXPECT_STREQ (g_hash_table_lookup (settings, "a"), "1");
  MUSTER_EXPECT_STREQ (g_hash_table_lookup (settings, "b"), "8");
  MUSTER_EXPECT_TRUE (muster_ini_read (text, strlen (text), "profile x", settings));
  MUSTER_EXPECT_STREQ (g_hash_table_lookup (settings, "a"), "4 # kept");
  MUSTER_EXPECT_STREQ (g_hash_table_lookup (settings, "b"), "8");
  MUSTER_EXPECT_STREQ (g_hash_table_lookup (settings, "c"), "d=e");
}

static MusterS3Xml *
parse (const char *text, GError **error)
{
  return muster_s3_xml_parse (text, strlen (text), error);
}

MUSTER_TEST (S3Xml, a_list_is_decoded_if_it_says_that_it_is_encoded)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterS3Xml) plain =
      parse ("<L><Contents><Key>a+b%41</Key><ETag>e</ETag></Contents></L>", &error);
  g_autoptr (MusterS3Xml) encoded =
      parse ("<?xml version='1.0'?>\n<s:L xmlns:s='x'><s:Contents><s:Key>a+b%41&amp;</s:Key>"
             "</s:Contents><CommonPrefixes><Prefix>c%2F/</Prefix></CommonPrefixes>"
             "<Upload><UploadId>u</UploadId><Key>d+e</Key></Upload><IsTruncated>true</IsTruncated>"
             "<NextContinuationToken>t+t</NextContinuationToken><EncodingType>url</EncodingType>"
             "</s:L>",
             &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_STREQ (plain->keys->pdata[0], "a+b%41");
  MUSTER_EXPECT_STREQ (encoded->keys->pdata[0], "a bA&");
  MUSTER_EXPECT_STREQ (encoded->prefixes->pdata[0], "c//");
  const MusterS3Pending *upload = encoded->uploads->pdata[0];
  MUSTER_EXPECT_STREQ (upload->key, "d e");
  MUSTER_EXPECT_STREQ (upload->id, "u");
  MUSTER_EXPECT_TRUE (encoded->is_truncated);
  MUSTER_EXPECT_STREQ (encoded->next_token, "t+t");
}

MUSTER_TEST (S3Xml, what_is_no_xml_or_too_deep_is_an_error)
{
  static const char *const texts[] = {"", "{}", "<a>", "<a></b>", "<a/><b/", "\xff<a/>"};
  g_autoptr (GString) deep = g_string_new (NULL);
  for (guint i = 0; i < 100; i++)
    g_string_append (deep, "<a>");
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%s", texts[i]);
    MUSTER_EXPECT_NULL (parse (texts[i], &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  }
  g_autoptr (GError) of_deep = NULL;
  MUSTER_EXPECT_NULL (parse (deep->str, &of_deep));
  MUSTER_EXPECT_SAYS (of_deep, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "nest deeper");
}

MUSTER_TEST (S3Keys, of_a_service_are_whole_or_an_error)
{
  static const char *const wrong[] = {"",
                                      "[]",
                                      "{",
                                      "{}",
                                      "{\"AccessKeyId\": \"a\"}",
                                      "{\"AccessKeyId\": 1, \"SecretAccessKey\": 2}",
                                      "{\"AccessKeyId\": \"a\", \"SecretAccessKey\": \"\"}"};
  g_auto (MusterS3Keys) keys = {0};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_s3_keys_from_json (
      "it",
      "{\"AccessKeyId\": \"a\", \"SecretAccessKey\": \"b\", \"Token\": \"c\", "
      "\"Expiration\": \"1970-01-02T00:00:00Z\"}",
      &keys, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (keys.token, "c");
  MUSTER_EXPECT_EQ (keys.expires_us, 86400 * MUSTER_SECOND);
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) of_wrong = NULL;
    MusterS3Keys none;
    MUSTER_EXPECT_FALSE (muster_s3_keys_from_json ("it", wrong[i], &none, &of_wrong));
    MUSTER_EXPECT_ERROR (of_wrong, MUSTER_ERROR, MUSTER_ERROR_UNAUTHENTICATED);
  }
}
