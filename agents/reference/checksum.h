/* Updating Internet checksums when a field changes (RFC 1624), without summing the packet again. */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include <stdint.h>

/* The checksum after a 16-bit or 32-bit aligned field changed; all in network byte order. */
uint16_t checksum_update16(uint16_t checksum, uint16_t old_field, uint16_t new_field);
uint16_t checksum_update32(uint16_t checksum, uint32_t old_field, uint32_t new_field);

#endif
