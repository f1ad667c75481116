/* Limits of deliveries (PROTOCOL.md section 9), for both sides. */
#ifndef VD_DELIVERY_H
#define VD_DELIVERY_H

enum {
    VD_DELIVERED_LOSSES_MAX = 16 << 20, /* bytes of losses.jsonl */
};

#endif
