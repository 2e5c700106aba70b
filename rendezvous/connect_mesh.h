// Connects the ranks of a context: publishes one record, gathers the others',
// hands their addresses to the transport, and tells everybody when the ranks
// contradict each other.
//
// What is in the store may be left over from an earlier run, so a record is
// evidence only when its writer is alive, or when it was written while this
// rank was looking:
// - an address that nobody answers at, and a record that cannot be decoded, is
//   stale: it is read again until a newer one replaces it, and is named at the
//   deadline;
// - another size, or this very rank under another nonce, is an error as soon
//   as its writer answers;
// - a refusal is believed if it replaced something, or appeared where there
//   was nothing.
// Every rank that gives up replaces its own record by a refusal and tells its
// peers through the mesh.
#pragma once

#include "gloo/common/deadline.h"
#include "gloo/common/store.h"
#include "gloo/config.h"
#include "gloo/internal/mesh.h"
#include "gloo/internal/profile.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

// `wanted` is what this process's environment asks for. Throws
// RendezvousException, or the cause that a peer reported.
void connectMesh(internal::Mesh& mesh, IStore& store, Deadline deadline,
                 const internal::Profile& wanted);

}  // namespace rendezvous
GLOO_NAMESPACE_END
