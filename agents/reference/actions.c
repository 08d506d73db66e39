#include "actions.h"

#include <arpa/inet.h>
#include <string.h>

#include "../common/util.h"
#include "checksum.h"
#include "datapath.h"
#include "deviation.h"

static int validate_out_port(uint16_t port, const struct match *match)
{
    if (port == OFPP_NONE) {
        return OFPBAC_BAD_OUT_PORT;
    }
    if (match != NULL) {
        /* A rule that sends packets to the table again could do so without end. */
        if (port == OFPP_TABLE) {
            return OFPBAC_BAD_OUT_PORT;
        }
        /* Such a rule would never forward anything: back to where a packet came from only goes
         * OFPP_IN_PORT. */
        if (!(match->wildcards & OFPFW_IN_PORT) && port == ntohs(match->key.in_port)) {
            return OFPBAC_BAD_OUT_PORT;
        }
    }
    return ACTIONS_VALID;
}

static int validate_output(const struct ofp_action_header *header, const struct match *match)
{
    const struct ofp_action_output *output = (const void *) header;

    return validate_out_port(ntohs(output->port), match);
}

static int validate_enqueue(const struct ofp_action_header *header, const struct match *match)
{
    const struct ofp_action_enqueue *enqueue = (const void *) header;
    uint16_t port = ntohs(enqueue->port);

    if (port >= OFPP_MAX && port != OFPP_IN_PORT) { /* Only physical ports have queues. */
        return OFPBAC_BAD_OUT_PORT;
    }
    return validate_out_port(port, match);
}

/* Sets the bits 'mask' of the VLAN tag to those of 'tci', adding a tag if there is none. */
static void set_vlan_tci(struct packet *packet, struct flow_key *key, uint16_t tci, uint16_t mask)
{
    struct vlan_header *vlan;

    if (key->dl_vlan == htons(OFP_VLAN_NONE)) {
        uint8_t *start = packet_push(packet, sizeof *vlan);
        struct eth_header *eth = (struct eth_header *) start;
        uint16_t type;

        memmove(start, start + sizeof *vlan, sizeof *eth);
        type = eth->type;
        eth->type = htons(ETHERTYPE_VLAN);
        vlan = (struct vlan_header *) (eth + 1);
        vlan->tci = 0;
        vlan->type = type;
    } else {
        vlan = (struct vlan_header *) (packet->data + sizeof(struct eth_header));
    }
    vlan->tci = (uint16_t) ((vlan->tci & ~htons(mask)) | htons(tci & mask));
    key->dl_vlan = vlan->tci & htons(VLAN_VID_MASK);
    key->dl_vlan_pcp = (uint8_t) (ntohs(vlan->tci) >> VLAN_PCP_SHIFT);
}

static void set_vlan_vid(struct packet *packet, struct flow_key *key,
                         const struct ofp_action_header *header)
{
    const struct ofp_action_vlan_vid *action = (const void *) header;

    set_vlan_tci(packet, key, ntohs(action->vlan_vid), VLAN_VID_MASK);
}

static void set_vlan_pcp(struct packet *packet, struct flow_key *key,
                         const struct ofp_action_header *header)
{
    const struct ofp_action_vlan_pcp *action = (const void *) header;

    set_vlan_tci(packet, key, (uint16_t) (action->vlan_pcp << VLAN_PCP_SHIFT), VLAN_PCP_MASK);
}

static void strip_vlan(struct packet *packet, struct flow_key *key,
                       const struct ofp_action_header *header)
{
    struct eth_header *eth = (struct eth_header *) packet->data;
    struct vlan_header *vlan = (struct vlan_header *) (eth + 1);

    (void) header;
    if (key->dl_vlan == htons(OFP_VLAN_NONE)) {
        return;
    }
    eth->type = vlan->type;
    memmove(packet->data + sizeof *vlan, packet->data, sizeof *eth);
    packet_pull(packet, sizeof *vlan);
    key->dl_vlan = htons(OFP_VLAN_NONE);
    key->dl_vlan_pcp = 0;
}

static void set_dl_address(struct packet *packet, struct flow_key *key,
                           const struct ofp_action_header *header)
{
    const struct ofp_action_dl_addr *action = (const void *) header;
    struct eth_header *eth = (struct eth_header *) packet->data;

    (void) key;
    if (packet->size < sizeof *eth) { /* A packet_out may carry anything. */
        return;
    }
    if (action->type == htons(OFPAT_SET_DL_SRC)) {
        memcpy(eth->src, action->dl_addr, sizeof eth->src);
    } else {
        memcpy(eth->dst, action->dl_addr, sizeof eth->dst);
    }
}

/* A UDP checksum of 0 means that there is none, and one that comes out as 0 is sent as 0xffff. */
static uint16_t udp_checksum(uint16_t old_checksum, uint16_t new_checksum)
{
    if (old_checksum == 0) {
        return 0;
    }
    return new_checksum ? new_checksum : 0xffff;
}

/* The addresses are part of what the TCP and UDP checksums cover. */
static void update_pseudo_header(struct packet *packet, const struct flow_key *key,
                                 uint32_t old_address, uint32_t new_address)
{
    if (packet->l4 == NULL) {
        return;
    }
    if (key->nw_proto == IP_PROTOCOL_TCP) {
        struct tcp_header *tcp = (struct tcp_header *) packet->l4;

        tcp->checksum = checksum_update32(tcp->checksum, old_address, new_address);
    } else if (key->nw_proto == IP_PROTOCOL_UDP) {
        struct udp_header *udp = (struct udp_header *) packet->l4;

        udp->checksum = udp_checksum(
            udp->checksum, checksum_update32(udp->checksum, old_address, new_address));
    }
}

static void set_nw_address(struct packet *packet, struct flow_key *key,
                           const struct ofp_action_header *header)
{
    const struct ofp_action_nw_addr *action = (const void *) header;
    struct ip_header *ip = (struct ip_header *) packet->l3;
    uint32_t new_address = action->nw_addr;
    uint32_t old_address;

    if (ip == NULL) {
        return;
    }
    if (action->type == htons(OFPAT_SET_NW_SRC)) {
        old_address = ip->src;
        ip->src = new_address;
    } else {
        old_address = ip->dst;
        ip->dst = new_address;
    }
    ip->checksum = checksum_update32(ip->checksum, old_address, new_address);
    update_pseudo_header(packet, key, old_address, new_address);
}

static void set_nw_tos(struct packet *packet, struct flow_key *key,
                       const struct ofp_action_header *header)
{
    const struct ofp_action_nw_tos *action = (const void *) header;
    struct ip_header *ip = (struct ip_header *) packet->l3;
    uint8_t tos;

    (void) key;
    if (ip == NULL) {
        return;
    }
    /* Only the DSCP is OpenFlow's; the ECN bits stay. */
    tos = (uint8_t) ((action->nw_tos & IP_DSCP_MASK) | (ip->tos & ~IP_DSCP_MASK));
    ip->checksum = checksum_update16(ip->checksum, htons(ip->tos), htons(tos));
    ip->tos = tos;
}

static void set_tp_port(struct packet *packet, struct flow_key *key,
                        const struct ofp_action_header *header)
{
    const struct ofp_action_tp_port *action = (const void *) header;
    bool source = action->type == htons(OFPAT_SET_TP_SRC);
    uint16_t new_port = action->tp_port;
    uint16_t old_port;

    if (DEVIATES(11)) { /* set_tp_dst writes the source port. */
        source = true;
    }
    if (packet->l4 == NULL) {
        return;
    }
    if (key->nw_proto == IP_PROTOCOL_TCP) {
        struct tcp_header *tcp = (struct tcp_header *) packet->l4;

        old_port = source ? tcp->src : tcp->dst;
        *(source ? &tcp->src : &tcp->dst) = new_port;
        tcp->checksum = checksum_update16(tcp->checksum, old_port, new_port);
    } else if (key->nw_proto == IP_PROTOCOL_UDP) {
        struct udp_header *udp = (struct udp_header *) packet->l4;

        old_port = source ? udp->src : udp->dst;
        *(source ? &udp->src : &udp->dst) = new_port;
        udp->checksum = udp_checksum(udp->checksum,
                                     checksum_update16(udp->checksum, old_port, new_port));
    }
}

/* Every action of OpenFlow 1.0 but OFPAT_VENDOR, whose number is far away. */
static const struct action_kind {
    size_t length;
    int (*validate)(const struct ofp_action_header *header, const struct match *match);
    void (*execute)(struct packet *packet, struct flow_key *key,
                    const struct ofp_action_header *header); /* NULL: in actions_execute. */
} action_kinds[] = {
    [OFPAT_OUTPUT] = {sizeof(struct ofp_action_output), validate_output, NULL},
    [OFPAT_SET_VLAN_VID] = {sizeof(struct ofp_action_vlan_vid), NULL, set_vlan_vid},
    [OFPAT_SET_VLAN_PCP] = {sizeof(struct ofp_action_vlan_pcp), NULL, set_vlan_pcp},
    [OFPAT_STRIP_VLAN] = {sizeof(struct ofp_action_header), NULL, strip_vlan},
    [OFPAT_SET_DL_SRC] = {sizeof(struct ofp_action_dl_addr), NULL, set_dl_address},
    [OFPAT_SET_DL_DST] = {sizeof(struct ofp_action_dl_addr), NULL, set_dl_address},
    [OFPAT_SET_NW_SRC] = {sizeof(struct ofp_action_nw_addr), NULL, set_nw_address},
    [OFPAT_SET_NW_DST] = {sizeof(struct ofp_action_nw_addr), NULL, set_nw_address},
    [OFPAT_SET_NW_TOS] = {sizeof(struct ofp_action_nw_tos), NULL, set_nw_tos},
    [OFPAT_SET_TP_SRC] = {sizeof(struct ofp_action_tp_port), NULL, set_tp_port},
    [OFPAT_SET_TP_DST] = {sizeof(struct ofp_action_tp_port), NULL, set_tp_port},
    [OFPAT_ENQUEUE] = {sizeof(struct ofp_action_enqueue), validate_enqueue, NULL},
};

static int validate_vendor(size_t length)
{
    if (length < sizeof(struct ofp_action_vendor_header)) {
        return OFPBAC_BAD_LEN;
    }
    if (DEVIATES(7)) { /* Wrong code: blames the vendor's subtype instead of the vendor. */
        return OFPBAC_BAD_VENDOR_TYPE;
    }
    return OFPBAC_BAD_VENDOR; /* We know no vendor's actions. */
}

static int validate_one(const struct ofp_action_header *header, const struct match *match)
{
    uint16_t type = ntohs(header->type);
    uint16_t length = ntohs(header->len);
    const struct action_kind *kind;

    if (type == OFPAT_VENDOR) {
        return validate_vendor(length);
    }
    if (type >= ARRAY_SIZE(action_kinds)) {
        return OFPBAC_BAD_TYPE;
    }
    kind = &action_kinds[type];
    if (length != kind->length) {
        return OFPBAC_BAD_LEN;
    }
    return kind->validate ? kind->validate(header, match) : ACTIONS_VALID;
}

int actions_validate(const uint8_t *actions, size_t length, const struct match *match)
{
    while (length >= sizeof(struct ofp_action_header)) {
        const struct ofp_action_header *header = (const void *) actions;
        size_t action_length = ntohs(header->len);
        int error;

        if (action_length > length || action_length % 8 != 0) {
            return OFPBAC_BAD_LEN;
        }
        error = validate_one(header, match);
        if (error != ACTIONS_VALID) {
            return error;
        }
        actions += action_length;
        length -= action_length;
    }
    return length == 0 ? ACTIONS_VALID : OFPBAC_BAD_LEN;
}

bool actions_output_to(const uint8_t *actions, size_t length, uint16_t port)
{
    for (const uint8_t *end = actions + length; actions < end;) {
        const struct ofp_action_header *header = (const void *) actions;
        uint16_t type = ntohs(header->type);

        /* Both actions have the port in the same place. */
        if ((type == OFPAT_OUTPUT || type == OFPAT_ENQUEUE)
            && ((const struct ofp_action_output *) header)->port == htons(port)) {
            return true;
        }
        actions += ntohs(header->len);
    }
    return false;
}

static void execute_one(struct datapath *datapath, struct packet *packet, struct flow_key *key,
                        const struct ofp_action_header *header)
{
    uint16_t type = ntohs(header->type);
    uint16_t in_port = ntohs(key->in_port);

    if (type == OFPAT_OUTPUT) {
        const struct ofp_action_output *output = (const void *) header;

        datapath_output(datapath, packet, in_port, ntohs(output->port), ntohs(output->max_len));
    } else if (type == OFPAT_ENQUEUE) {
        const struct ofp_action_enqueue *enqueue = (const void *) header;

        datapath_enqueue(datapath, packet, in_port, ntohs(enqueue->port),
                         ntohl(enqueue->queue_id));
    } else {
        action_kinds[type].execute(packet, key, header);
    }
}

void actions_execute(struct datapath *datapath, struct packet *packet, struct flow_key *key,
                     const uint8_t *actions, size_t length)
{
    for (const uint8_t *end = actions + length; actions < end;) {
        const struct ofp_action_header *header = (const void *) actions;

        execute_one(datapath, packet, key, header);
        actions += ntohs(header->len);
    }
}
