/**
 * The hash chain that events stand in (protocols section 6): d0 = SHA-256(domain ‖ chain id), dn = SHA-256(dn−1 ‖ n ‖
 * SHA-256(body)), n as eight bytes big-endian, over the exact bytes of the body. Digests are lower-case hex outside.
 */
const domain = 'gatehouse.events.v1'

/** The digest a chain begins with, before its first event (whose n is 1). */
export const chainStart = (chain: string): string =>
  new Bun.CryptoHasher('sha256').update(`${domain}\0${chain}`).digest('hex')

/** The digest after event number `n` with this body. */
export function chainNext(previous: string, n: number, body: string | Uint8Array): string {
  const link = Buffer.allocUnsafe(72)
  link.write(previous, 0, 'hex')
  link.writeUInt32BE(Math.floor(n / 2 ** 32), 32)
  link.writeUInt32BE(n % 2 ** 32, 36)
  Bun.SHA256.hash(body, link.subarray(40))
  return Bun.SHA256.hash(link, 'hex')
}

/** The control plane's own chain; a gateway lane's chain is named by its lane. */
export const controlPlaneChain = 'control-plane'
