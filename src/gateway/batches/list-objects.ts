/**
 * `GET /v1/files` and `GET /v1/batches`: the control plane knows which ones the token's owner has made, and each is
 * asked of its provider as it is now. What is gone there, or may not be used by the token, is left out.
 */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { checkLive } from '../admission/authenticate.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { readBounded } from '../request/read-with-limit.ts'
import { openId, placeOf, type StoredPlace, writtenPlace } from '../stored/sealed-id.ts'
import { notFound } from '../stored/stored-call.ts'
import { newStoredState } from '../stored/stored-state.ts'
import { holderIn } from './batch-call.ts'
import { originOf, ownerOf } from './file-place.ts'
import { batchEdits, fileEdits } from './object-edits.ts'

type ListedKind = 'file' | 'batch'

export const listQuerySchema = z.strictObject({
  limit: z
    .string()
    .regex(/^[1-9]\d{0,4}$/)
    .default('20')
    .describe('How many objects a page has: at most 100, whatever more is asked for'),
  after: z.string().optional().describe('The id of the last object that the caller has'),
  order: z.literal('desc').optional(),
  purpose: z.string().optional(),
})

/** The most objects of a page. */
const mostListed = 100
/** Providers asked at once for one list. */
const askedAtOnce = 8
/** Pages of the control plane for one page of a list, of which the provider may have lost most. */
const mostPages = 5
/** An answer that describes a file or a batch is small. */
const longestDescription = 1024 * 1024

export const listObjects =
  (kind: ListedKind) =>
  async (exchange: Exchange, gateway: Gateway): Promise<void> => {
    const { limit, after, purpose } = readQuery(exchange.request.url)
    const place = after === undefined ? null : openId(kind, after, required(exchange.token), gateway)
    if (after !== undefined && place === null) throw notFound()
    exchange.stored = newStoredState()
    const none = kind === 'file' && purpose !== undefined && purpose !== 'batch'
    const { data, hasMore } = none
      ? { data: [], hasMore: false }
      : await new Listing(exchange, gateway, kind).read(place, limit)
    checkLive(exchange, gateway)
    await finishExchange(exchange, gateway, { verdict: 'allow', reason: 'ok', status: 200 })
    const [first, last] = [data.at(0)?.id ?? null, data.at(-1)?.id ?? null]
    exchange.answer = Response.json(
      { object: 'list', data, first_id: first, last_id: last, has_more: hasMore },
      { headers: { 'x-request-id': exchange.requestId, 'x-service-verdict': 'ALLOW' } },
    )
  }

function readQuery(url: string): { limit: number; after?: string | undefined; purpose?: string | undefined } {
  const start = url.indexOf('?')
  const read = listQuerySchema.safeParse(Object.fromEntries(new URLSearchParams(start < 0 ? '' : url.slice(start + 1))))
  if (read.success) return { ...read.data, limit: Math.min(Number(read.data.limit), mostListed) }
  const [issue] = read.error.issues
  if (issue?.code === 'unrecognized_keys') {
    throw new Failure('unknown_parameter', { message: 'The query has a parameter that this route does not know' })
  }
  const param = String(issue?.path[0] ?? 'limit')
  throw new Failure('invalid_parameter', { message: `${param} has a wrong value: see /v1/openapi.json`, param })
}

class Listing {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #kind: ListedKind

  constructor(exchange: Exchange, gateway: Gateway, kind: ListedKind) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#kind = kind
  }

  async read(after: StoredPlace | null, limit: number): Promise<{ data: JsonObject[]; hasMore: boolean }> {
    const { worker } = this.#gateway
    const data: JsonObject[] = []
    let last = after === null ? null : [...writtenPlace(after)]
    for (let page = 0; page < mostPages; page++) {
      const query = { owner: ownerOf(this.#exchange), kind: this.#kind, after: last, limit: limit - data.length }
      const { places, has_more: hasMore } = await worker.batches.list(query)
      for (let from = 0; from < places.length; from += askedAtOnce) {
        const some = places.slice(from, from + askedAtOnce)
        const objects = await Promise.all(some.map((place) => this.#ask(placeOf(place))))
        data.push(...objects.filter((object) => object !== null))
      }
      last = places.at(-1) ?? last
      if (!hasMore || data.length === limit) return { data, hasMore }
    }
    return { data, hasMore: true }
  }

  /** The object as its provider describes it now; null if it is gone, or not for this token. */
  async #ask(place: StoredPlace): Promise<JsonObject | null> {
    const exchange = this.#exchange
    const gateway = this.#gateway
    const model = holderIn(exchange, gateway, place)
    if (model === null) return null
    const path = this.#kind === 'file' ? `/files/${place.id}` : `/batches/${place.id}`
    const answer = await this.#send(model, path)
    const reader = answer.body?.getReader()
    const bytes = reader === undefined ? null : await readBounded(reader, longestDescription)
    if (answer.status === 404) return null
    const object = answer.ok && bytes !== null ? parseObject(new TextDecoder().decode(bytes)) : null
    if (object?.id !== place.id) throw new Failure('upstream_provider_error')
    // Each object is of its own provider.
    const of: Exchange = { ...exchange, model, stored: newStoredState() }
    const origin = originOf(place)
    const editsOf =
      this.#kind === 'batch' && origin !== null ? batchEdits(of, gateway, origin) : fileEdits(of, gateway, place.more)
    for (const [member, json] of editsOf(object)) object[member] = JSON.parse(json)
    return object
  }

  async #send({ kind, provider, upstreamModel }: NonNullable<Exchange['model']>, path: string): Promise<Response> {
    const { fetch, settings } = this.#gateway
    const { call, slot } = this.#exchange
    try {
      return await kind.send(
        provider,
        {
          ...{ family: 'chat', model: upstreamModel, stream: false, endpoint: { method: 'GET', path } },
          ...{ body: new Uint8Array(0), contentType: 'application/json', headers: { accept: 'application/json' } },
          signal: AbortSignal.any([call.abort.signal, AbortSignal.timeout(1000 * settings.first_byte_timeout_seconds)]),
          slot,
          answerLimit: settings.answer_limit_bytes,
        },
        fetch,
      )
    } catch (thrown) {
      throw this.#exchange.cut?.failure ?? new Failure('provider_primary_path_error', { cause: thrown })
    }
  }
}
