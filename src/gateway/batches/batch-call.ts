/** The stages of a call for a file or a batch: opens the id, finds the provider, and says what becomes of the answer. */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { families } from '../../languages/families.ts'
import { dialects } from '../../languages/index.ts'
import { pathOf } from '../../lib/http/request-path.ts'
import type { PolicyChain } from '../../policies/chain.ts'
import { chainFor } from '../admission/policy-chain.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { relayBinary } from '../response/binary.ts'
import { openId, type StoredPlace } from '../stored/sealed-id.ts'
import { type HasObjects, holderOf, notFound } from '../stored/stored-call.ts'
import type { StoredCall } from '../stored/stored-state.ts'
import { relayOutput } from './end/output.ts'
import { type CheckedLines, linesOf, originOf } from './file-place.ts'
import { batchEdits, fileEdits, newBatchEdits } from './object-edits.ts'
import type { BatchRoute } from './routes.ts'
import { rulesDigest } from './upload/rules-digest.ts'

const takesBatches: HasObjects = (kind) => kind.batches !== undefined

/** The provider of an object of a list; null if there is none any more, or the token may not use it. */
export function holderIn(exchange: Exchange, gateway: Gateway, place: StoredPlace): ResolvedModel | null {
  try {
    return holderOf(exchange, gateway, place, takesBatches)
  } catch (thrown) {
    if (thrown instanceof Failure && (thrown.status === 404 || thrown.status === 403)) return null
    throw thrown
  }
}

/** Opens the id in the path or in the body. Throws `stored_object_not_found`. */
export const openBatchCall =
  (route: BatchRoute) =>
  (exchange: Exchange, gateway: Gateway): void => {
    const [, , , inPath = ''] = pathOf(exchange.request.url).split('/')
    const name = route.about === 'new batch' ? readNewBatch(exchange).input_file_id : inPath
    const kind = route.about === 'batch' ? 'batch' : 'file'
    const place = openId(kind, name, required(exchange.token), gateway)
    const checked = place === null ? null : linesOf(place)
    if (place === null || checked === null) throw notFound()
    const holder = holderOf(exchange, gateway, place, takesBatches)
    const model = { ...holder, listed: gateway.worker.view.model(holder.id) }
    exchange.model = model
    exchange.paths = [model]
    exchange.facts = { ...required(exchange.facts), model: model.upstreamModel }
    const stored = required(exchange.stored)
    const { method, about } = route
    stored.names.set(place.id, name)
    if (about === 'new batch') {
      requireSameRules(exchange, gateway, { model, checked })
      exchange.edits.set('input_file_id', JSON.stringify(place.id))
      stored.batch = { lines: checked.lines, bound: checked.bound, made: null, isRefused: false }
    }
    // The policies on the answers of the output: the record has room for their decisions.
    if (about === 'content') exchange.chain = chainOf(exchange, gateway, { model, checked })
    stored.call = {
      ...{ method, path: route.upstream(place.id), gives: kind },
      answersWith: about === 'new batch' || about === 'content' ? null : place.id,
      ...answerOf(route, exchange, gateway, { place, checked }),
    }
  }

function answerOf(
  { about }: BatchRoute,
  exchange: Exchange,
  gateway: Gateway,
  { place, checked }: { place: StoredPlace; checked: CheckedLines },
): Partial<StoredCall> {
  const origin = originOf(place)
  switch (about) {
    case 'file':
      return { editsOf: fileEdits(exchange, gateway, place.more) }
    case 'content':
      return {
        // The lines of an input are the owner's own text, as it was sent.
        relay: (upstream) =>
          origin === null
            ? relayBinary(exchange, gateway, upstream, Number.POSITIVE_INFINITY)
            : relayOutput(exchange, gateway, { upstream, origin }),
      }
    case 'new batch':
      if (origin !== null) throw notAnInput()
      return { editsOf: newBatchEdits(exchange, gateway, checked), isOnce: true }
    case 'batch':
      if (origin === null) throw notFound()
      return { editsOf: batchEdits(exchange, gateway, origin) }
  }
}

const notAnInput = (): Failure => {
  const message = 'input_file_id names the output of a batch: upload a file of requests'
  return new Failure('invalid_parameter', { message, param: 'input_file_id' })
}

export const newBatchSchema = z.strictObject({
  input_file_id: z.string(),
  endpoint: z.string(),
  completion_window: z.string(),
  metadata: z.record(z.string(), z.string()).nullish(),
  output_expires_after: z.strictObject({ anchor: z.string(), seconds: z.number() }).nullish(),
})

function readNewBatch({ parsed }: Exchange): z.infer<typeof newBatchSchema> {
  const read = newBatchSchema.safeParse(parsed)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined
  const param = unknown ?? String(issue?.path[0] ?? 'input_file_id')
  if (unknown !== undefined) {
    throw new Failure('unknown_parameter', { message: `A batch has no ${unknown}: see /v1/openapi.json`, param })
  }
  throw new Failure('invalid_parameter', { message: `${param} is missing or has a wrong value`, param })
}

/** Throws `batch_file_outdated` unless the policies and the price are those by which the file was checked. */
function requireSameRules(
  exchange: Exchange,
  gateway: Gateway,
  { model, checked }: { model: ResolvedModel; checked: CheckedLines },
): void {
  const { family, rules } = checked
  const { endpoint } = readNewBatch(exchange)
  if (endpoint !== families[family].path) {
    const message = `endpoint must be that of the file's lines: ${families[family].path}`
    throw new Failure('invalid_parameter', { message, param: 'endpoint' })
  }
  const chain = chainOf(exchange, gateway, { model, checked })
  const terms = gateway.prices.terms(model, gateway.clock.now())
  if (rulesDigest(chain, terms) !== rules) throw new Failure('batch_file_outdated', { param: 'input_file_id' })
}

const chainOf = (
  exchange: Exchange,
  gateway: Gateway,
  { model, checked }: { model: ResolvedModel; checked: CheckedLines },
): PolicyChain => chainFor({ ...exchange, dialect: dialects[checked.family] }, gateway, model)

/** The price table, without which no price can be compared. */
export const loadPrices = (_exchange: Exchange, gateway: Gateway): Promise<void> => gateway.prices.load()
