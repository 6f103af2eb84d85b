/**
 * Objects of a bucket: compressed lines of JSON (zstd, RFC 8878), named by the positions of their records, so that their
 * names have the order of the record. Beside each object of records stands its proof. With Object Lock nobody can change
 * either before its time. Calls are signed with AWS Signature Version 4; addresses are in path style.
 */
import { SignatureV4 } from '@smithy/signature-v4'
import { Sha256 } from '../../providers/aws-signature.ts'
import { ContentRefused, type Parcel, ReceiverFailed, type ReceiverTools, type Sink, type SinkKind } from '../sink.ts'
import { joined, post } from './post.ts'

const megabyte = 1_000_000
const dayMilliseconds = 86_400_000
const objectSuffix = '.ndjson.zst'
const proofSuffix = '.proof.json'
const digits = 15

const padded = (position: number): string => String(position).padStart(digits, '0')

/** What the objects of a parcel are called: the positions of its first and its last record. */
const nameOf = ({ first, next }: Parcel): string => (next === 0 ? 'test' : `${padded(first)}-${padded(next - 1)}`)

const namePattern = new RegExp(`(\\d{${digits}})-(\\d{${digits}})(\\${objectSuffix}|\\${proofSuffix})$`)

/** What a key names; null for another object. */
export function archiveName(key: string): { first: number; next: number; isProof: boolean } | null {
  const match = namePattern.exec(key)
  if (match === null) return null
  return { first: Number(match[1]), next: Number(match[2]) + 1, isProof: match[3] === proofSuffix }
}

export const s3: SinkKind = {
  formats: ['records', 'events', 'ocsf'],
  proves: 'object',
  schemes: { tls: 'https', plain: 'http' },
  own: 's3',
  needs: ['access_key_id', 'secret_access_key'],
  most: { items: 10_000, bytes: 8 * megabyte },
  restMilliseconds: ({ s3: config }) => (config?.every_seconds ?? 60) * 1000,
  open(sink, tools) {
    const bucket = createBucket(sink, tools)
    return {
      async send(parcel, signal) {
        const { items, proof } = parcel
        const name = nameOf(parcel)
        if (items.length > 0) {
          const body = await Bun.zstdCompress(await joined(items, ({ json }) => `${json}\n`, ''))
          await bucket.put(`${name}${objectSuffix}`, new Uint8Array(body), signal)
        }
        // The proof comes last: an object that has one is whole.
        if (proof !== null) await bucket.put(`${name}${proofSuffix}`, new TextEncoder().encode(proof), signal)
      },
      close: async () => undefined,
    }
  },
}

const allKeys = /<Key>([^<]*)<\/Key>/g

/** The objects of a sink. Keys are without its prefix. */
export function createBucket(sink: Sink, tools: ReceiverTools) {
  const { access_key_id: accessKeyId = '', secret_access_key: secretAccessKey = '' } = sink.credentials
  const {
    bucket = '',
    prefix = '',
    region = 'us-east-1',
    lock_days: days,
    lock_mode = 'compliance',
  } = sink.config.s3 ?? {}
  const signer = new SignatureV4({
    ...{ credentials: { accessKeyId, secretAccessKey }, region, service: 's3', sha256: Sha256, uriEscapePath: false },
  })
  const call = async (
    method: 'GET' | 'PUT',
    key: string,
    more: { query?: Record<string, string>; headers?: Record<string, string>; body?: Uint8Array<ArrayBuffer> },
    signal: AbortSignal,
  ): Promise<Response> => {
    const { query = {}, body } = more
    const url = new URL(sink.url)
    url.pathname = [
      url.pathname.replace(/\/+$/, ''),
      bucket,
      ...(key === '' ? [] : [key.split('/').map(encodeURIComponent).join('/')]),
    ].join('/')
    url.search = new URLSearchParams(query).toString()
    const { protocol, hostname, host, pathname } = url
    const headers = { ...more.headers, host, 'x-amz-content-sha256': Bun.SHA256.hash(body ?? '', 'hex') }
    const unsigned = {
      method,
      protocol,
      hostname,
      path: pathname,
      query,
      headers,
      ...(body === undefined ? {} : { body }),
    }
    const signed = await signer.sign(unsigned, { signingDate: new Date(tools.now()) })
    const { host: _, ...sent } = signed.headers
    try {
      return await post(
        sink,
        tools,
        { method, url: url.href, headers: sent, ...(body === undefined ? {} : { body }) },
        signal,
      )
    } catch (error) {
      // A bucket looks at no record: what it refuses is never their fault.
      if (error instanceof ContentRefused) throw new ReceiverFailed(error.message, { cause: error })
      throw error
    }
  }
  return {
    async put(key: string, body: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<void> {
      const until = days === undefined ? null : new Date(tools.now() + days * dayMilliseconds).toISOString()
      const headers = {
        'content-type': key.endsWith(proofSuffix) ? 'application/json' : 'application/zstd',
        'x-amz-sdk-checksum-algorithm': 'SHA256',
        'x-amz-checksum-sha256': Bun.SHA256.hash(body, 'base64'),
        ...(until === null
          ? {}
          : { 'x-amz-object-lock-mode': lock_mode.toUpperCase(), 'x-amz-object-lock-retain-until-date': until }),
      }
      await call('PUT', `${prefix}${key}`, { headers, body }, signal)
    },
    async get(key: string, signal: AbortSignal): Promise<Uint8Array> {
      return await (await call('GET', `${prefix}${key}`, {}, signal)).bytes()
    },
    /** The keys in their order. */
    async *list(signal: AbortSignal): AsyncGenerator<string, void, undefined> {
      let after = ''
      for (;;) {
        const query = { 'list-type': '2', prefix, ...(after === '' ? {} : { 'start-after': after }) }
        const text = await (await call('GET', '', { query }, signal)).text()
        const keys = [...text.matchAll(allKeys)].map(([, key = '']) => key)
        for (const key of keys) yield key.slice(prefix.length)
        after = keys.at(-1) ?? ''
        if (!text.includes('<IsTruncated>true')) return
        if (after === '') throw new ReceiverFailed('The bucket listed no object and said that there are more')
      }
    },
  }
}
