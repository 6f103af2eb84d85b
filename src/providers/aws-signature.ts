/**
 * Signature Version 4 of a call to AWS (AWS Identity and Access Management user guide, Create a signed request): the
 * headers that a POST gets. Loaded with the first call that needs it.
 */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'

export interface AwsCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

export interface UnsignedCall {
  url: string
  body: Uint8Array
  contentType: string
  region: string
  credentials: AwsCredentials | null
}

type Bytes = string | ArrayBuffer | ArrayBufferView

const bytesOf = (data: Bytes): string | Uint8Array => {
  if (typeof data === 'string') return data
  return ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data)
}

/** The hash that the signer asks for, by the runtime: a body may have megabytes. */
export class Sha256 {
  #hash: Hash | Hmac
  readonly #secret: Bytes | undefined

  constructor(secret?: Bytes) {
    this.#secret = secret
    this.#hash = this.#fresh()
  }

  update(data: Bytes): void {
    this.#hash.update(bytesOf(data))
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }

  reset(): void {
    this.#hash = this.#fresh()
  }

  #fresh(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(this.#secret))
  }
}

/** The headers that sign a POST for Bedrock at this time; none without credentials. */
export async function signed(
  { url, body, contentType, region, credentials }: UnsignedCall,
  now: Date,
): Promise<Record<string, string>> {
  if (credentials === null) return {}
  const { protocol, hostname, host, pathname } = new URL(url)
  const signer = new SignatureV4({ credentials, region, service: 'bedrock', sha256: Sha256 })
  const request = {
    method: 'POST',
    protocol,
    hostname,
    path: pathname,
    headers: { host, 'content-type': contentType },
    body,
  }
  const { headers } = await signer.sign(request, { signingDate: now })
  const { host: _, 'content-type': __, ...added } = headers
  return added
}
