/**
 * Asks the provider how a batch is, and reads the output of one that ended, to know what it used. What will never be
 * known stays charged in full.
 */
import { isFamily } from '../../../languages/families.ts'
import { isObject, parseObject, textOf } from '../../../languages/reading/json-value.ts'
import { LineReader } from '../../../lib/http/line-reader.ts'
import { providerKinds } from '../../../providers/kinds/index.ts'
import type { BatchUse, OpenBatch } from '../../../usage/batches/batch-protocol.ts'
import type { Gateway } from '../../context.ts'
import { readBounded } from '../../request/read-with-limit.ts'
import { isProviderId } from '../../stored/sealed-id.ts'
import { isFinal } from './open-batch.ts'
import { readOutputLine } from './output-lines.ts'
import { isCount, OutputUsage, reportedTokens } from './output-usage.ts'

interface Looking {
  readonly signal: AbortSignal
  /** Nothing more is expected: what is not known now counts as never known. */
  readonly isLast: boolean
}

/** An answer that describes a batch is small. */
const longestDescription = 1024 * 1024

/**
 * What the batch used; null while it runs, or while the provider cannot say it. Rejects when the provider is out of
 * reach.
 */
export async function lookAtBatch(batch: OpenBatch, gateway: Gateway, looking: Looking): Promise<BatchUse | null> {
  const unknown = looking.isLast ? wholeOf(batch, 'unknown') : null
  const answer = await ask(batch, gateway, `/batches/${batch.id}`, looking)
  if (answer === null) return unknown
  if (answer.status === 404) {
    await answer.body?.cancel()
    return wholeOf(batch, 'gone')
  }
  const reader = answer.body?.getReader()
  const bytes = reader === undefined ? null : await readBounded(reader, longestDescription)
  const described = answer.ok && bytes !== null ? parseObject(new TextDecoder().decode(bytes)) : null
  if (described?.id !== batch.id || !isFinal(described.status)) return unknown
  const { request_counts: counts, usage, output_file_id: output, error_file_id: errors } = described
  const { worker, prices } = gateway
  const provider = worker.view.provider(batch.provider_id)
  const kind = provider === null ? undefined : providerKinds.get(provider.kind)
  if (provider === null || kind === undefined || !isFamily(batch.family)) return unknown
  await prices.load()
  const { model: id, upstream_model: upstreamModel, lines, bound, family } = batch
  const model = { id, aliases: [], upstreamModel, provider, kind, listed: worker.view.model(id) }
  const { price } = prices.terms(model, batch.created_at)
  const used = new OutputUsage({ family, lines, bound, price })
  for (const file of [output, errors]) {
    if (typeof file !== 'string' || !isProviderId(file)) continue
    if (!(await readOutput(batch, gateway, file, { used, looking }))) return unknown
  }
  const completed = isObject(counts) && isCount(counts.completed) ? counts.completed : null
  return {
    ...{ hold: batch.hold, status: textOf(described.status) ?? '', whole: false },
    ...used.end(completed, reportedTokens(usage)),
    price_source: price?.source ?? null,
  }
}

/** Reads one file of the output. Returns false if the provider does not give it. */
async function readOutput(
  batch: OpenBatch,
  gateway: Gateway,
  file: string,
  { used, looking }: { used: OutputUsage; looking: Looking },
): Promise<boolean> {
  const answer = await ask(batch, gateway, `/files/${file}/content`, looking)
  if (answer === null) return false
  if (!answer.ok || answer.body === null) {
    await answer.body?.cancel()
    return false
  }
  const lines = new LineReader(gateway.settings.body_limit_bytes)
  const add = (line: ReturnType<typeof readOutputLine>): void => {
    if (line !== null) used.add(line)
  }
  for await (const bytes of answer.body) for (const line of lines.push(bytes)) add(readOutputLine(line))
  for (const line of lines.end()) add(readOutputLine(line))
  return true
}

/** Null if this gateway cannot ask the provider. */
async function ask(
  batch: OpenBatch,
  { worker, fetch, settings }: Gateway,
  path: string,
  { signal }: Looking,
): Promise<Response | null> {
  const provider = worker.view.provider(batch.provider_id)
  const kind = provider === null ? undefined : providerKinds.get(provider.kind)
  if (provider === null || kind?.batches === undefined || !isFamily(batch.family)) return null
  return await kind.send(
    provider,
    {
      family: batch.family,
      model: batch.upstream_model,
      stream: false,
      endpoint: { method: 'GET', path },
      body: new Uint8Array(0),
      contentType: 'application/json',
      headers: { accept: 'application/json' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(1000 * settings.total_timeout_seconds)]),
      answerLimit: settings.answer_limit_bytes,
    },
    fetch,
  )
}

/** A batch whose use nobody knows: all that it holds stays charged. */
const wholeOf = ({ hold, lines, bound }: OpenBatch, status: string): BatchUse => ({
  ...{ hold, status, requests: lines, cost: bound, whole: true, estimated: true },
  ...{ input_tokens: 0, output_tokens: 0, cached_input_tokens: 0, reasoning_tokens: 0 },
  price_source: null,
  notes: [],
})
