/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent's own functions, found at run time.  No header of libevent is included anywhere in this
 * folder: one binary serves 2.0, 2.1 and 2.2.  A pointer is NULL where this libevent lacks the name.
 */

#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <sys/time.h>

#include "hook/got.h"

struct bufferevent;
struct evconnlistener;
struct evdns_base;
struct evdns_request;
struct evdns_server_port;
struct event;
struct event_base;
struct event_callback;
struct event_config;
struct evhttp;
struct evhttp_connection;
struct evhttp_request;
struct sockaddr;

/* Bits of the second argument of an event callback. */
enum d9__event_what {
	D9__EV_TIMEOUT = 1,
	D9__EV_READ = 2,
	D9__EV_WRITE = 4,
	D9__EV_SIGNAL = 8,
	D9__EV_PERSIST = 16,
};

/* Flags of event_base_loop() and event_base_get_num_events(). */
#define D9__EVLOOP_NONBLOCK 2
#define D9__EVENT_COUNT_ACTIVE 1u

typedef void (*d9__event_fn)(int fd, short what, void *arg);
typedef void (*d9__pair_fn)(void *object, void *arg);
typedef void (*d9__bufferevent_event_fn)(void *bev, short what, void *arg);
typedef void (*d9__listener_fn)(void *listener, int fd, void *address, int len, void *arg);
typedef void (*d9__dns_fn)(int result, char type, int count, int ttl, void *addresses, void *arg);
typedef void (*d9__addrinfo_fn)(int result, void *info, void *arg);
typedef int (*d9__answer_fn)(void *object, void *arg);
typedef void *(*d9__maker_fn)(void *base, void *arg);
typedef void (*d9__error_fn)(int error, void *arg);

/* F(returned type, name, parameters): what is hooked ... */
#define D9__LIBEVENT_HOOKED(F)                                                                     \
	F(int, event_assign,                                                                       \
	  (struct event *, struct event_base *, int, short, d9__event_fn, void *))                 \
	F(struct event *, event_new, (struct event_base *, int, short, d9__event_fn, void *))      \
	F(void, event_set, (struct event *, int, short, d9__event_fn, void *))                     \
	F(int, event_base_once,                                                                    \
	  (struct event_base *, int, short, d9__event_fn, void *, const struct timeval *))         \
	F(int, event_once, (int, short, d9__event_fn, void *, const struct timeval *))             \
	F(int, event_add, (struct event *, const struct timeval *))                                \
	F(void, event_free, (struct event *))                                                      \
	F(void, event_debug_unassign, (struct event *))                                            \
	F(int, event_finalize, (unsigned, struct event *, d9__pair_fn))                            \
	F(int, event_free_finalize, (unsigned, struct event *, d9__pair_fn))                       \
	F(d9__event_fn, event_get_callback, (const struct event *))                                \
	F(void, event_get_assignment,                                                              \
	  (const struct event *, struct event_base **, int *, short *, d9__event_fn *, void **))   \
	F(struct event_base *, event_base_new, (void))                                             \
	F(struct event_base *, event_base_new_with_config, (const struct event_config *))          \
	F(struct event_base *, event_init, (void))                                                 \
	F(int, event_base_loop, (struct event_base *, int))                                        \
	F(int, event_base_dispatch, (struct event_base *))                                         \
	F(void, event_base_free, (struct event_base *))                                            \
	F(void, event_base_free_nofinalize, (struct event_base *))                                 \
	F(int, event_reinit, (struct event_base *))                                                \
	F(int, event_callback_activate_nolock_, (struct event_base *, struct event_callback *))    \
	F(int, event_callback_activate_later_nolock_,                                              \
	  (struct event_base *, struct event_callback *))                                          \
	F(void, event_active_nolock, (struct event *, int, short))                                 \
	F(void, event_active, (struct event *, int, short))                                        \
	F(int, event_deferred_cb_schedule_, (struct event_base *, struct event_callback *))        \
	F(void, event_deferred_cb_init_,                                                           \
	  (struct event_callback *, uint8_t, d9__pair_fn, void *))                                 \
	F(void, event_deferred_cb_init, (void *, d9__pair_fn, void *))                             \
	F(int, event_callback_finalize_many_,                                                      \
	  (struct event_base *, int, struct event_callback **, d9__pair_fn))                       \
	F(void, event_set_mem_functions, (void *, void *, void *))                                 \
	F(void, bufferevent_setcb,                                                                 \
	  (struct bufferevent *, d9__pair_fn, d9__pair_fn, d9__bufferevent_event_fn, void *))      \
	F(void, bufferevent_getcb,                                                                 \
	  (struct bufferevent *, d9__pair_fn *, d9__pair_fn *, d9__bufferevent_event_fn *,         \
	   void **))                                                                               \
	F(int, evhttp_set_cb, (struct evhttp *, const char *, d9__pair_fn, void *))                \
	F(void, evhttp_set_gencb, (struct evhttp *, d9__pair_fn, void *))                          \
	F(struct evhttp_request *, evhttp_request_new, (d9__pair_fn, void *))                      \
	F(void, evhttp_request_set_chunked_cb, (struct evhttp_request *, d9__pair_fn))             \
	F(void, evhttp_request_set_on_complete_cb,                                                 \
	  (struct evhttp_request *, d9__pair_fn, void *))                                          \
	F(void, evhttp_request_set_header_cb, (struct evhttp_request *, d9__answer_fn))            \
	F(void, evhttp_request_set_error_cb, (struct evhttp_request *, d9__error_fn))              \
	F(void, evhttp_set_bevcb, (struct evhttp *, d9__maker_fn, void *))                         \
	F(void, evhttp_connection_set_closecb, (struct evhttp_connection *, d9__pair_fn, void *))  \
	F(struct evconnlistener *, evconnlistener_new,                                             \
	  (struct event_base *, d9__listener_fn, void *, unsigned, int, int))                      \
	F(struct evconnlistener *, evconnlistener_new_bind,                                        \
	  (struct event_base *, d9__listener_fn, void *, unsigned, int, const struct sockaddr *,   \
	   int))                                                                                   \
	F(void, evconnlistener_set_cb, (struct evconnlistener *, d9__listener_fn, void *))         \
	F(void, evconnlistener_set_error_cb, (struct evconnlistener *, d9__pair_fn))               \
	F(struct evdns_request *, evdns_base_resolve_ipv4,                                         \
	  (struct evdns_base *, const char *, int, d9__dns_fn, void *))                            \
	F(struct evdns_request *, evdns_base_resolve_ipv6,                                         \
	  (struct evdns_base *, const char *, int, d9__dns_fn, void *))                            \
	F(struct evdns_request *, evdns_base_resolve_reverse,                                      \
	  (struct evdns_base *, const void *, int, d9__dns_fn, void *))                            \
	F(struct evdns_request *, evdns_base_resolve_reverse_ipv6,                                 \
	  (struct evdns_base *, const void *, int, d9__dns_fn, void *))                            \
	F(void *, evdns_getaddrinfo,                                                               \
	  (struct evdns_base *, const char *, const char *, const void *, d9__addrinfo_fn,         \
	   void *))                                                                                \
	F(struct evdns_server_port *, evdns_add_server_port_with_base,                             \
	  (struct event_base *, int, int, d9__pair_fn, void *))                                    \
	F(struct bufferevent *, bufferevent_socket_new, (struct event_base *, int, int))           \
	F(int, bufferevent_pair_new, (struct event_base *, int, struct bufferevent **))            \
	F(struct bufferevent *, bufferevent_filter_new,                                            \
	  (struct bufferevent *, void *, void *, int, void *, void *))                             \
	F(struct bufferevent *, bufferevent_openssl_socket_new,                                    \
	  (struct event_base *, int, void *, int, int))                                            \
	F(struct bufferevent *, bufferevent_openssl_filter_new,                                    \
	  (struct event_base *, struct bufferevent *, void *, int, int))                           \
	F(int, bufferevent_socket_connect_hostname,                                                \
	  (struct bufferevent *, struct evdns_base *, int, const char *, int))                     \
	F(int, bufferevent_set_rate_limit, (struct bufferevent *, void *))                         \
	F(void *, bufferevent_rate_limit_group_new, (struct event_base *, const void *))           \
	F(int, evhttp_bind_socket, (struct evhttp *, const char *, uint16_t))                      \
	F(void *, evhttp_bind_socket_with_handle, (struct evhttp *, const char *, uint16_t))       \
	F(int, evhttp_accept_socket, (struct evhttp *, int))                                       \
	F(void *, evhttp_accept_socket_with_handle, (struct evhttp *, int))                        \
	F(void *, evhttp_bind_listener, (struct evhttp *, struct evconnlistener *))                \
	F(struct evhttp_connection *, evhttp_connection_base_new,                                  \
	  (struct event_base *, struct evdns_base *, const char *, uint16_t))                      \
	F(struct evhttp_connection *, evhttp_connection_base_bufferevent_new,                      \
	  (struct event_base *, struct evdns_base *, struct bufferevent *, const char *,           \
	   uint16_t))                                                                              \
	F(int, evhttp_make_request,                                                                \
	  (struct evhttp_connection *, struct evhttp_request *, int, const char *))                \
	F(struct evdns_base *, evdns_base_new, (struct event_base *, int))                         \
	F(int, evdns_base_nameserver_add, (struct evdns_base *, unsigned long))                    \
	F(int, evdns_base_nameserver_ip_add, (struct evdns_base *, const char *))                  \
	F(int, evdns_base_nameserver_sockaddr_add,                                                 \
	  (struct evdns_base *, const struct sockaddr *, unsigned, unsigned))                      \
	F(int, event_base_loopexit, (struct event_base *, const struct timeval *))                 \
	F(int, evthread_make_base_notifiable, (struct event_base *))                               \
	F(const struct timeval *, event_base_init_common_timeout,                                  \
	  (struct event_base *, const struct timeval *))                                           \
	F(const char *, evutil_getenv_, (const char *))                                            \
	F(const char *, evutil_getenv, (const char *))                                             \
	F(void, event_logv_, (int, const char *, const char *, va_list))

/* ... and what is only called. */
#define D9__LIBEVENT_CALLED(F)                                                                     \
	F(int, event_del, (struct event *))                                                        \
	F(const char *, event_base_get_method, (const struct event_base *))                        \
	F(struct event_base *, event_get_base, (const struct event *))                             \
	F(short, event_get_events, (const struct event *))                                         \
	F(int, event_get_fd, (const struct event *))                                               \
	F(const char *, event_get_version, (void))                                                 \
	F(int, event_base_get_num_events, (struct event_base *, unsigned))                         \
	F(void *, event_self_cbarg, (void))

/*
 * F(returned type, name, parameters, names of the parameters): functions of a static libevent that
 * register something of its own meanwhile.  Where libevent is shared, an address tells that.
 */
#define D9__LIBEVENT_OUTER(F)                                                                      \
	F(void, bufferevent_free, (struct bufferevent * bev), (bev))                               \
	F(int, bufferevent_setfd, (struct bufferevent * bev, int fd), (bev, fd))                   \
	F(int, bufferevent_base_set, (struct event_base * base, struct bufferevent * bev),         \
	  (base, bev))                                                                             \
	F(int, bufferevent_socket_connect,                                                         \
	  (struct bufferevent * bev, const struct sockaddr *address, int len),                     \
	  (bev, address, len))                                                                     \
	F(int, bufferevent_ssl_renegotiate, (struct bufferevent * bev), (bev))                     \
	F(void, evhttp_free, (struct evhttp * http), (http))                                       \
	F(struct evhttp *, evhttp_start, (const char *address, uint16_t port), (address, port))    \
	F(void, evhttp_connection_free, (struct evhttp_connection * connection), (connection))     \
	F(void, evhttp_cancel_request, (struct evhttp_request * request), (request))               \
	F(void, evhttp_send_error, (struct evhttp_request * request, int code, const char *why),   \
	  (request, code, why))                                                                    \
	F(void, evhttp_send_reply,                                                                 \
	  (struct evhttp_request * request, int code, const char *why, void *body),                \
	  (request, code, why, body))                                                              \
	F(void, evhttp_send_reply_start,                                                           \
	  (struct evhttp_request * request, int code, const char *why), (request, code, why))      \
	F(void, evhttp_send_reply_chunk, (struct evhttp_request * request, void *body),            \
	  (request, body))                                                                         \
	F(void, evhttp_send_reply_chunk_with_cb,                                                   \
	  (struct evhttp_request * request, void *body, d9__pair_fn sent, void *arg),              \
	  (request, body, sent, arg))                                                              \
	F(void, evhttp_send_reply_end, (struct evhttp_request * request), (request))               \
	F(int, evdns_init, (void), ())                                                             \
	F(int, evdns_base_resolv_conf_parse,                                                       \
	  (struct evdns_base * dns, int flags, const char *path), (dns, flags, path))              \
	F(int, evdns_base_resume, (struct evdns_base * dns), (dns))                                \
	F(int, evdns_base_clear_nameservers_and_suspend, (struct evdns_base * dns), (dns))         \
	F(void, evdns_base_free, (struct evdns_base * dns, int fail), (dns, fail))                 \
	F(void, evdns_cancel_request, (struct evdns_base * dns, struct evdns_request * request),   \
	  (dns, request))                                                                          \
	F(int, evdns_server_request_respond, (void *request, int error), (request, error))

#define D9__LIBEVENT_MEMBER(type, name, params) type(*name) params;

struct d9__libevent_real {
	D9__LIBEVENT_HOOKED(D9__LIBEVENT_MEMBER)
	D9__LIBEVENT_CALLED(D9__LIBEVENT_MEMBER)
};

/* Filled by the GOT engine before the first slot is swapped, then constant. */
extern struct d9__libevent_real d9__real;

extern struct d9__images d9__libevent_images;
extern struct d9__got_table d9__libevent_table;

/* Find what is only called.  Before the first use of those pointers. */
void d9__libevent_resolve(void);

/*
 * Are we objects of a static library?  libtool compiles those without -DPIC.  Then the linker's
 * --wrap may bring the program's calls, see static.c; a hook's symbol is what that looks for.
 */
#ifdef PIC
#define D9__LIBEVENT_ARCHIVE 0
#define D9__LIBEVENT_HOOK_SYMBOL(function)
#else
#define D9__LIBEVENT_ARCHIVE		   1
#define D9__LIBEVENT_HOOK_SYMBOL(function) __asm__("__wrap_" #function)
#endif

/* The replacement of each hooked function: d9__hook_event_assign() and so on. */
#define D9__LIBEVENT_HOOK(type, name, params)                                                      \
	type d9__hook_##name params D9__LIBEVENT_HOOK_SYMBOL(name);
D9__LIBEVENT_HOOKED(D9__LIBEVENT_HOOK)
