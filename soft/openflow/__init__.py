"""OpenFlow on the wire: message layouts, probe packets, cutting, decoding for people, normalisation."""
