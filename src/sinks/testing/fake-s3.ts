/**
 * A strict S3 server for tests, written from the API reference: PutObject, GetObject and ListObjectsV2 in path style,
 * with Signature Version 4 checked (IAM user guide, "Create a signed request"), checksums checked, and Object Lock: a
 * locked object takes a new version and never loses one.
 */
import { createHash, createHmac } from 'node:crypto'

interface Version {
  bytes: Uint8Array
  lockedUntil: string | null
  mode: string | null
}

const hex = (data: Uint8Array | string): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: Uint8Array | string, text: string) => createHmac('sha256', key).update(text).digest()
const escaped = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)

export class FakeS3 {
  /** The versions of each object by its key, the newest last. */
  readonly objects = new Map<string, Version[]>()
  /** Answers instead of the store, where it gives something. */
  instead: (method: string, key: string) => Response | null = () => null
  /** How many keys a page of a list has. */
  pageKeys = 1000
  readonly #server: Bun.Server<undefined>
  readonly #bucket: string
  readonly #secret: string

  constructor(bucket: string, secret: string) {
    this.#bucket = bucket
    this.#secret = secret
    this.#server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => this.#answer(request) })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`
  }

  stop = (): Promise<void> => this.#server.stop(true)

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const [, bucket, ...rest] = url.pathname.split('/')
    const key = rest.map(decodeURIComponent).join('/')
    const bytes = await request.bytes()
    if (bucket !== this.#bucket) return fault(404, 'NoSuchBucket')
    if (request.headers.get('x-amz-content-sha256') !== hex(bytes)) return fault(400, 'XAmzContentSHA256Mismatch')
    if (!this.#isSigned(request, url, key)) return fault(403, 'SignatureDoesNotMatch')
    const other = this.instead(request.method, key)
    if (other !== null) return other
    if (request.method === 'PUT') return this.#put(request, key, bytes)
    return key === '' ? this.#list(url.searchParams) : this.#get(key)
  }

  #put(request: Request, key: string, bytes: Uint8Array): Response {
    const checksum = request.headers.get('x-amz-checksum-sha256')
    const lockedUntil = request.headers.get('x-amz-object-lock-retain-until-date')
    const mode = request.headers.get('x-amz-object-lock-mode')
    if (checksum !== null && checksum !== createHash('sha256').update(bytes).digest('base64'))
      return fault(400, 'BadDigest')
    if ((lockedUntil === null) !== (mode === null)) return fault(400, 'InvalidRequest')
    if (lockedUntil !== null && request.headers.get('x-amz-sdk-checksum-algorithm') !== 'SHA256')
      return fault(400, 'InvalidRequest')
    if (mode !== null && mode !== 'COMPLIANCE' && mode !== 'GOVERNANCE') return fault(400, 'InvalidArgument')
    this.objects.set(key, [...(this.objects.get(key) ?? []), { bytes, lockedUntil, mode }])
    return new Response()
  }

  #get(key: string): Response {
    const newest = this.objects.get(key)?.at(-1)
    return newest === undefined ? fault(404, 'NoSuchKey') : new Response(new Uint8Array(newest.bytes))
  }

  #list(query: URLSearchParams): Response {
    if (query.get('list-type') !== '2') return fault(400, 'InvalidArgument')
    const [prefix, after] = [query.get('prefix') ?? '', query.get('start-after') ?? '']
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).toSorted()
    const page = keys.slice(0, this.pageKeys)
    const contents = page.map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`).join('')
    const truncated = `<IsTruncated>${keys.length > page.length}</IsTruncated>`
    return new Response(`<?xml version="1.0"?><ListBucketResult>${truncated}${contents}</ListBucketResult>`)
  }

  #isSigned({ method, headers }: Request, url: URL, key: string): boolean {
    const header =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/
    const [, , day = '', region = '', names = '', signature] = header.exec(headers.get('authorization') ?? '') ?? []
    if (!names.split(';').includes('host')) return false
    const path = `/${[this.#bucket, ...(key === '' ? [] : key.split('/'))].map(escaped).join('/')}`
    const query = [...url.searchParams]
      .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
      .toSorted()
      .join('&')
    const signedHeaders = names
      .split(';')
      .map((name) => `${name}:${(headers.get(name) ?? '').trim()}\n`)
      .join('')
    const payload = headers.get('x-amz-content-sha256')
    const canonical = [method, path, query, signedHeaders, names, payload].join('\n')
    const scope = `${day}/${region}/s3/aws4_request`
    const toSign = ['AWS4-HMAC-SHA256', headers.get('x-amz-date'), scope, hex(canonical)].join('\n')
    const signingKey = [day, region, 's3', 'aws4_request'].reduce<Uint8Array | string>(hmac, `AWS4${this.#secret}`)
    return hmac(signingKey, toSign).toString('hex') === signature
  }
}

const fault = (status: number, code: string): Response =>
  new Response(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`, { status })
