/** Addresses to listen at, as `HOST:PORT`. */

interface HostAndPort {
  host: string
  port: number
}

export function splitAddress(address: string): HostAndPort {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

const joinAddress = ({ host, port }: HostAndPort): string => `${host.includes(':') ? `[${host}]` : host}:${port}`

/**
 * The address with a real port. Listening there for a moment finds a free one, and finds out before anything is
 * started that the address cannot be had. Throws what the system says.
 */
export function settleAddress(address: string): string {
  const { host, port } = splitAddress(address)
  const probe = Bun.listen({ hostname: host, port, socket: { data: () => undefined } })
  const settled = joinAddress({ host, port: probe.port })
  probe.stop(true)
  return settled
}

/** How a process on this host reaches what listens there. */
export function localUrl(address: string): string {
  const { host, port } = splitAddress(address)
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${joinAddress({ host: reachable, port })}`
}
