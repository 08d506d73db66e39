"""A learning switch for OpenFlow 1.0 as an os-ken application; `python -m tests.agents.learning_switch TCP_PORT`."""

from __future__ import annotations

import sys
from typing import Any

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0


class LearningSwitch(app_manager.OSKenApp):  # type: ignore[misc]
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]  # noqa: RUF012 (os-ken reads it as a class attribute)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.ports: dict[str, int] = {}

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)  # type: ignore[untyped-decorator]
    def packet_in(self, event: Any) -> None:
        message = event.msg
        datapath = message.datapath
        protocol, parser = datapath.ofproto, datapath.ofproto_parser
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        self.ports[frame.src] = message.in_port
        port = self.ports.get(frame.dst, protocol.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(port)]
        if port != protocol.OFPP_FLOOD:
            fields = parser.OFPMatch(in_port=message.in_port, dl_src=frame.src, dl_dst=frame.dst)
            datapath.send_msg(
                parser.OFPFlowMod(
                    datapath, fields, cookie=0, command=protocol.OFPFC_ADD, idle_timeout=60, actions=actions
                )
            )
        data = message.data if message.buffer_id == protocol.OFP_NO_BUFFER else None
        datapath.send_msg(
            parser.OFPPacketOut(
                datapath, buffer_id=message.buffer_id, in_port=message.in_port, actions=actions, data=data
            )
        )


if __name__ == "__main__":
    cfg.CONF(["--ofp-listen-host=127.0.0.1", f"--ofp-tcp-listen-port={sys.argv[1]}"], project="os_ken")
    app_manager.AppManager.run_apps(["os_ken.controller.ofp_handler", "tests.agents.learning_switch"])
