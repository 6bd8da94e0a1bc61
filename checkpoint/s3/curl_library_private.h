// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>
#include <glib.h>

G_BEGIN_DECLS

/* libcurl, loaded at the first use of an object store, so that a process without one pays nothing
 * for it. Its functions are called through this table. */
typedef struct {
  __typeof__ (&curl_global_init) global_init;
  __typeof__ (&curl_version_info) version_info;
  __typeof__ (&curl_getdate) getdate;
  CURL *(*easy_init) (void);
  void (*easy_reset) (CURL *easy);
  void (*easy_cleanup) (CURL *easy);
  CURLcode (*easy_setopt) (CURL *easy, CURLoption option, ...);
  CURLcode (*easy_getinfo) (CURL *easy, CURLINFO info, ...);
  const char *(*easy_strerror) (CURLcode code);
  CURLM *(*multi_init) (void);
  CURLMcode (*multi_setopt) (CURLM *multi, CURLMoption option, ...);
  CURLMcode (*multi_add_handle) (CURLM *multi, CURL *easy);
  CURLMcode (*multi_remove_handle) (CURLM *multi, CURL *easy);
  CURLMcode (*multi_perform) (CURLM *multi, int *n_running);
  CURLMcode (*multi_poll) (CURLM *multi, struct curl_waitfd extra[], unsigned int n_extra,
                           int timeout_ms, int *n_ready);
  CURLMcode (*multi_wakeup) (CURLM *multi);
  CURLMsg *(*multi_info_read) (CURLM *multi, int *n_left);
  CURLMcode (*multi_cleanup) (CURLM *multi);
  struct curl_slist *(*slist_append) (struct curl_slist *list, const char *text);
  void (*slist_free_all) (struct curl_slist *list);
} MusterCurl;

/* The library, for the rest of the process. UNIMPLEMENTED, with the package to install, if it is
 * missing or too old. Any thread. */
const MusterCurl *muster_curl (GError **error);

/* Fills the table from a library of that name. */
gboolean muster_curl_load (const char *name, MusterCurl *curl, GError **error);

G_END_DECLS
