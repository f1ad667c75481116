/* Every limit and deadline of the transport. Times in milliseconds on the monotonic clock. */
#ifndef VD_NET_LIMITS_H
#define VD_NET_LIMITS_H

enum {
    /* Sizes that both sides agree on: a server accepts no larger body, a client no larger answer.
     */
    VD_NET_REQUEST_MAX = 16 << 20,
    VD_NET_RESPONSE_MAX = 112 << 20,

    /* Server. */
    VD_NET_HEADER_MAX = 16 << 10, /* request line and headers together */
    VD_NET_HEADERS_MAX = 64,      /* headers of a request whose head is judged before its body */
    VD_NET_CONNECTION_MAX = 128,  /* more wait in the kernel, and others give way to them */
    VD_NET_ADDRESS_SHARE = 2,     /* one address holds at most 1/2 of the connections */
    VD_NET_BACKLOG = 512,         /* connections that the kernel keeps waiting */
    VD_NET_ROOM = 16,             /* 1/16 of the connections gives way in one sweep */
    VD_NET_QUEUE_MAX = 32,        /* requests waiting for the worker; then 503 */
    VD_NET_ASKER_MAX = 8,         /* of them by one asker */
    VD_NET_HELD_MAX = 128 << 20,  /* bytes of requests and responses in memory; then 503 or a cut */
    VD_NET_READ_MAX = 32 << 20,   /* of them in responses of the second handler; then 503. A larger
                                     one goes out alone, beside all that is held */
    VD_NET_GRACE_MS = 5000,       /* for a request before its rate is looked at */
    VD_NET_RATE_MIN = 1024,       /* bytes a second of a request, after that; less is cut */
    VD_NET_HANDSHAKE_MS = 10000,  /* from accept to the first byte of a request */
    VD_NET_REQUEST_MS = 30000,    /* from the first to the last byte of a request */
    VD_NET_SEND_MS = 120000,      /* from the handler's return to the last byte of the response */
    VD_NET_IDLE_MS = 60000,       /* between two requests of a connection */
    VD_NET_SWEEP_MS = 50,         /* how often deadlines are looked at */

    /* Client. */
    VD_NET_ASK_MAX = 64,       /* exchanges under way at once */
    VD_NET_CONNECT_MS = 10000, /* DNS, TCP and TLS, within the exchange's own deadline */
    VD_NET_RESPONSE_HEADER_MAX = 64 << 10, /* all headers of a response, interim ones included */
    VD_NET_REUSE_S = 30,    /* reuse a connection idle this long: below VD_NET_IDLE_MS */
    VD_NET_PATH_MAX = 1024, /* bytes of a request's path */
};

#endif
