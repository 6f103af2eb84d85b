/**
 * Keeps the connections of more than 64 concurrent calls over TLS. fetch keeps at most 64 idle connections for each TLS
 * configuration, whatever their host. Each further call makes a connection with its handshake, which costs more than
 * twice the rest of a request. So calls are spread over configurations that differ in a limit that no server reaches:
 * how often it may renegotiate. What is verified is the same for all.
 *
 * Calls without TLS have one pool. A connection without a handshake is cheap.
 */

/** A little below the limit of fetch, because a connection is returned a moment after its call has ended. */
const callsInPool = 60
/** Each pool costs about 0.2 MB. Above this many times `callsInPool`, the last pool takes the rest. */
const maxPools = 32

const pools: readonly Bun.TLSOptions[] = Array.from({ length: maxPools }, (_, index) => ({
  // The only protocol that fetch offers anyway. Without a setting of this kind Bun ignores the limit.
  ALPNProtocols: 'http/1.1',
  clientRenegotiationLimit: 10 + index,
}))

/**
 * The TLS options of a call that has this slot among all running calls (`lib/http/slots.ts`). Undefined for the first pool,
 * which fetch has by itself.
 */
export function poolOf(url: string, slot: number): Bun.TLSOptions | undefined {
  if (slot < callsInPool || !url.startsWith('https:')) return undefined
  return pools[Math.min(Math.floor(slot / callsInPool), maxPools) - 1]
}
