# Sourced in a guest of $1 guests: makes its RDMA devices. See run_in_guest.sh.
ulimit -l unlimited
hostname "guest$GUEST"
ip link set lo up mtu 65536
if (($1 == 1)); then
  rdma link add rxe0 type rxe netdev lo || exit 125
  # Both ends of one cable in one network stack: each has to accept packets from
  # the other's address, which is local too.
  ip link add eth1 type veth peer name eth2
  for name in all default eth1 eth2; do
    sysctl -q -w "net.ipv4.conf.$name.accept_local=1" \
      "net.ipv4.conf.$name.rp_filter=0"
  done
  for n in 1 2; do
    ip link set "eth$n" mtu 4200 up
    ip addr add "10.78.0.$n/24" dev "eth$n"
  done
  ip neigh replace 10.78.0.2 dev eth1 \
    lladdr "$(cat /sys/class/net/eth2/address)"
  ip neigh replace 10.78.0.1 dev eth2 \
    lladdr "$(cat /sys/class/net/eth1/address)"
  for n in 1 2; do
    rdma link add "rxe$n" type rxe netdev "eth$n" || exit 125
  done
else
  ip addr add "10.77.0.$((GUEST + 1))/24" dev eth0
  ip link set eth0 mtu 4200 up
  rdma link add rxe0 type rxe netdev eth0 || exit 125
fi
