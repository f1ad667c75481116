/* Limits and deadlines of the transport. Times are in milliseconds, by the monotonic clock. */
#ifndef VD_NET_LIMITS_H
#define VD_NET_LIMITS_H

enum {
    /* Both sides have these: a server accepts no larger body, a client no larger answer. */
    VD_NET_REQUEST_MAX = 16 << 20,
    VD_NET_RESPONSE_MAX = 112 << 20,

    /* server */
    VD_NET_HEADER_MAX = 16 << 10, /* request line and headers together */
    VD_NET_HEADERS_MAX = 64,      /* in requests whose head is judged before the body */
    VD_NET_CONNECTION_MAX = 128,  /* more wait in the kernel, and others give way to them */
    VD_NET_ADDRESS_SHARE = 2,     /* one address holds at most 1/2 of the connections */
    VD_NET_BACKLOG = 512,         /* connections that the kernel keeps waiting */
    VD_NET_ROOM = 16,             /* in one sweep, 1/16 of the connections may give way */
    VD_NET_QUEUE_MAX = 32,        /* requests waiting for a worker; then 503 */
    VD_NET_ASKER_MAX = 8,         /* of these, by one asker */
    VD_NET_HELD_MAX = 128 << 20,  /* requests and responses in memory, bytes; then 503 or a cut */
    VD_NET_READ_MAX = 32 << 20,   /* of these, by `read`; then 503. A larger one goes alone */
    VD_NET_GRACE_MS = 5000,       /* for a request, before its rate is checked */
    VD_NET_RATE_MIN = 1024,       /* bytes a second of a request, after that; a slower one is cut */
    VD_NET_HANDSHAKE_MS = 10000,  /* from accept to the first byte of a request */
    VD_NET_REQUEST_MS = 30000,    /* from the first to the last byte of a request */
    VD_NET_SEND_MS = 120000,      /* from the handler's return to the last byte of the response */
    VD_NET_IDLE_MS = 60000,       /* between two requests of a connection */
    VD_NET_SWEEP_MS = 50,         /* interval of the checks of deadlines */

    /* client */
    VD_NET_ASK_MAX = 64,       /* exchanges under way at once */
    VD_NET_CONNECT_MS = 10000, /* DNS, TCP and TLS, within the exchange's own deadline */
    VD_NET_RESPONSE_HEADER_MAX = 64 << 10, /* all headers of a response, including interim ones */
    VD_NET_REUSE_S = 30,    /* longest idle time before reuse: below VD_NET_IDLE_MS */
    VD_NET_PATH_MAX = 1024, /* bytes of a request's path */
};

#endif
