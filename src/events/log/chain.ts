/**
 * The hash chain of events (events/proof/README.md): d0 = SHA-256(domain ‖ chain id), dn = SHA-256(dn−1 ‖ n ‖
 * SHA-256(body)), with n as eight bytes big-endian, over the exact bytes of the body. Digests are lower-case hex
 * outside.
 */
const domain = 'gatehouse.events.v1'

/** The digest of a chain before its first event (whose n is 1). */
export const chainStart = (chain: string): string =>
  new Bun.CryptoHasher('sha256').update(`${domain}\0${chain}`).digest('hex')

/** The digest after event number `n` with this body. */
export function chainNext(previous: string, n: number, body: string | Uint8Array): string {
  const walk = new ChainWalk(previous)
  walk.step(n, body)
  return walk.digest
}

/** Walks along a chain, event by event. */
export class ChainWalk {
  /** dn−1, n and the body's digest, as they are hashed. */
  readonly #link = Buffer.allocUnsafe(72)
  readonly #digest = this.#link.subarray(0, 32)
  readonly #body = this.#link.subarray(40)

  constructor(digest: string) {
    this.#link.write(digest, 0, 'hex')
  }

  /** Event number `n` with this body. */
  step(n: number, body: string | Uint8Array): void {
    this.#link.writeUInt32BE(Math.floor(n / 2 ** 32), 32)
    this.#link.writeUInt32BE(n % 2 ** 32, 36)
    Bun.SHA256.hash(body, this.#body)
    Bun.SHA256.hash(this.#link, this.#digest)
  }

  /** Event number `n` by the SHA-256 of its body, in lower-case hex. */
  stepOver(n: number, digest: string): void {
    this.#link.writeUInt32BE(Math.floor(n / 2 ** 32), 32)
    this.#link.writeUInt32BE(n % 2 ** 32, 36)
    this.#body.write(digest, 0, 'hex')
    Bun.SHA256.hash(this.#link, this.#digest)
  }

  /** The digest after the last step. */
  get digest(): string {
    return this.#digest.toString('hex')
  }
}

/** The control plane's own chain. A worker's chain has the worker's name. */
export const controlPlaneChain = 'control-plane'
