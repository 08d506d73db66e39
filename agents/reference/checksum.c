#include "checksum.h"

/* One's complement sums do not depend on byte order, so nothing is swapped here. */
uint16_t checksum_update16(uint16_t checksum, uint16_t old_field, uint16_t new_field)
{
    uint32_t sum = (uint16_t) ~checksum + (uint32_t) (uint16_t) ~old_field + new_field;

    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~sum;
}

uint16_t checksum_update32(uint16_t checksum, uint32_t old_field, uint32_t new_field)
{
    checksum = checksum_update16(checksum, (uint16_t) old_field, (uint16_t) new_field);
    return checksum_update16(checksum, (uint16_t) (old_field >> 16), (uint16_t) (new_field >> 16));
}
